"""One token at a time by hand: look at the distribution, take any token, go back, take another.

Adds to `engine/stepping.py`, which does the work, what a reader wants to see: distributions and text.
"""

from __future__ import annotations

from operator import index
from typing import Self, SupportsIndex

from tokenglass.api.distribution import Distribution
from tokenglass.engine.stepping import Stepper
from tokenglass.sampling.candidates import Scores
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Vocabulary
from tokenglass.tokens.stream import decode


class Step(Stepper):
    """A text that grows token by token; a token more costs one row. Made by `LanguageModel.step`.

    step = model.step("The capital of France is", temperature=0.8, seed=1)
    step.next().top(1)[0].text       # ' Paris'
    step.take(7042)                  # ' Paris' by its id, or any other token
    step.take(step.draw().token_id)  # or the one that the sampling settings choose here
    step.truncate(step.num_prompt)   # back to the prompt
    """

    def __enter__(self) -> Self:
        return self

    @property
    def text(self) -> str:
        """The text of the tokens taken so far; a torn character at its end shows as U+FFFD."""
        before = self.ids[self.num_prompt - 1]
        return decode(self._engine.tokenizer.vocabulary, self.taken_ids, after=before)

    def take(self, token_id: SupportsIndex) -> None:
        """Appends any token of the vocabulary. ParameterError: no such token, or the window is full."""
        super().take(index(token_id))  # also what argmax gives, a numpy integer

    def next(self, top: int = 20) -> Distribution:
        """What could come next, `top` tokens of it printed. No forward pass when asked again."""
        check_integer("top", top, 0, 1 << 31)
        return distribution(self.scores(), self._engine.tokenizer.vocabulary, top)

    def __repr__(self) -> str:
        return f"Step({self.num_prompt} prompt tokens, then {self.text!r})"

    def __del__(self) -> None:
        if hasattr(self, "_pages"):  # not when the prompt was refused
            self.close()


def distribution(scores: Scores, vocabulary: Vocabulary, num_shown: int) -> Distribution:
    """A distribution over a read-only copy of the only row of `scores`."""
    logits = scores.numpy()[0].copy()
    logits.flags.writeable = False
    return Distribution(logits, vocabulary, num_shown=num_shown)
