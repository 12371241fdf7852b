"""One text that grows a token at a time, by hand: look at the scores, take a token, go back, take another.

Everything goes by ids, never by text: a branch is ids[:k] and the token taken there, whatever it spells.
Going back forgets the cached positions after it and nothing else, so the scores are bit for bit those of the
first visit. `loop.py` does the same without anybody watching; tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from tokenglass.cache.pages import pages_for
from tokenglass.engine.loop import Engine
from tokenglass.engine.request import Request
from tokenglass.errors import ParameterError
from tokenglass.models.batch import Batch, Slice
from tokenglass.sampling import Choice, Draw, Sampling
from tokenglass.sampling.candidates import Scores
from tokenglass.sampling.choose import choose_row
from tokenglass.sampling.params import check_integer


class Stepper:
    """A prompt and what was taken after it.

    with Stepper(engine, engine.tokenizer.encode("The capital of France is")) as stepper:
        stepper.take(stepper.draw().token_id)   # ids are now the prompt's and one more
        stepper.branch(5, 260)                  # ids[:5] + [260], however often it is called

    Invariant: positions [0, num_cached) of `ids` are cached in the stepper's own pages, num_cached < len(ids)
    until the scores after the last id are asked for. `close` (or the block's end) gives the pages back.
    ContextFullError, ParameterError: a prompt that can never run.
    """

    def __init__(
        self, engine: Engine, prompt_ids: Sequence[int], *, sampling: Sampling | None = None
    ) -> None:
        request = Request(prompt_ids=prompt_ids, sampling=sampling or Sampling())
        engine.scheduler.check(request)
        self._engine = engine
        self.sampling = request.sampling
        self.ids = list(request.prompt_ids)
        self.num_prompt = len(self.ids)
        self.num_cached = 0
        self.num_passes = 0  # forward passes so far
        self._pages: list[int] = []
        self._scores: Scores | None = None  # after all of `ids`

    def __enter__(self) -> Stepper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def taken_ids(self) -> list[int]:
        """The tokens after the prompt."""
        return self.ids[self.num_prompt :]

    @property
    def is_ended(self) -> bool:
        """Whether the newest token is one of the model's end tokens. More may be taken all the same."""
        end_ids = self._engine.tokenizer.vocabulary.end_ids
        return len(self.ids) > self.num_prompt and self.ids[-1] in end_ids

    @property
    def is_full(self) -> bool:
        """Whether the context window has no room for a further token."""
        return len(self.ids) >= self._engine.context_length

    def scores(self) -> Scores:
        """The logits of the next token, [1, vocab], in a buffer of their own. One forward pass for what is
        not cached yet, none when asked again. TokenglassError: others hold the cache's pages.
        """
        if self._scores is None:
            self._scores = self._forward()
        return self._scores

    def draw(self, *, trace_top: int | None = None) -> Choice:
        """The token that the sampling settings give here, as `Engine.stream` would; nothing is taken.

        The same each time: a draw is a function of seed and position. `trace_top`: with reasons, and this
        many candidates. ModelOutputError: there is nothing to choose.
        """
        choice = choose_row(self.scores(), 0, Draw(self.sampling, self.ids, self.num_prompt, trace_top))
        if choice.error is not None:
            raise choice.error
        return choice

    def take(self, token_id: int) -> None:
        """Appends a token, any token of the vocabulary. ParameterError: no such token, or no room."""
        self._check_token("token id", token_id)
        if self.is_full:
            raise ParameterError(
                "token", f"cannot be taken: the context window of {self._engine.context_length} is full"
            )
        self.ids.append(token_id)
        self._scores = None

    def truncate(self, length: int) -> None:
        """Forgets every id from `length` on. ParameterError: inside the prompt, or beyond the end."""
        check_integer("length", length, self.num_prompt, len(self.ids))
        if length == len(self.ids):
            return
        del self.ids[length:]
        self.num_cached = min(self.num_cached, length - 1)  # the last id runs again: it gives the scores
        self._scores = None

    def branch(self, length: int, token_id: int) -> None:
        """Makes `ids` ids[:length] + [token_id]. Twice is the same as once. Errors as for the two above."""
        self._check_token("token id", token_id)
        self.truncate(length)
        self.take(token_id)

    def close(self) -> None:
        """Gives the pages back. Twice does no harm."""
        self._engine.scheduler.pool.give_back(self._pages)
        self._pages, self.num_cached, self._scores = [], 0, None

    def _forward(self) -> Scores:
        """Runs what is not cached, in pieces as large as a step may be; scores of the last id."""
        missing = pages_for(len(self.ids)) - len(self._pages)
        self._pages += self._engine.scheduler.reserve(max(0, missing))
        max_rows = self._engine.scheduler.max_rows
        while True:
            start = self.num_cached
            new_ids = self.ids[start : start + max_rows]
            end = start + len(new_ids)
            is_last = end == len(self.ids)
            pages = self._pages[: pages_for(end)]
            logits = self._engine.model.forward(Batch((Slice(new_ids, start, pages, int(is_last)),)))
            self.num_cached = end
            self.num_passes += 1
            if is_last:
                return logits.replaced(logits.numpy()[0])

    def _check_token(self, name: str, token_id: int) -> None:
        check_integer(name, token_id, 0, self._engine.tokenizer.vocabulary.num_tokens - 1)
