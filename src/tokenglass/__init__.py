"""tokenglass: a glass-box LLM engine. Start reading at `engine/loop.py`.

    import tokenglass as tg
    model = tg.load("smollm2-135m-instruct")
    print(model.generate("The capital of France is", max_tokens=8))
    model.next("The capital of France is")

The names below live in `api/`; they are imported when first used, so that `import tokenglass` takes no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenglass.api import Distribution, Generation, LanguageModel, Score, Step, Token, Tokens, load
    from tokenglass.sampling import Sampling

__version__ = "0.1.0"

__all__ = [
    "Distribution",
    "Generation",
    "LanguageModel",
    "Sampling",
    "Score",
    "Step",
    "Token",
    "Tokens",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tokenglass' has no attribute {name!r}")
    home = "tokenglass.sampling" if name == "Sampling" else "tokenglass.api"
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
