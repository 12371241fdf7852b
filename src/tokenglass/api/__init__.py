"""The Python interface, which `import tokenglass as tg` shows: a model to load, and what it answers with.

`model.py` what a model can be asked; `step.py` one token at a time by hand; `text.py`, `distribution.py` and
`answers.py` what comes back; `look.py` how it looks in a notebook. A thin layer: the
work is done in `engine/`, `tokens/`, `sampling/`.
"""

from tokenglass.api.answers import Generation, Score, TokenLogprob, Usage
from tokenglass.api.distribution import Distribution, TokenProbability
from tokenglass.api.model import LanguageModel, load
from tokenglass.api.step import Step
from tokenglass.api.text import Token, Tokens
from tokenglass.engine.scoring import Perplexity

__all__ = [
    "Distribution",
    "Generation",
    "LanguageModel",
    "Perplexity",
    "Score",
    "Step",
    "Token",
    "TokenLogprob",
    "TokenProbability",
    "Tokens",
    "Usage",
    "load",
]
