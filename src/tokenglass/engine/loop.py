"""The loop: score every token, choose one, append it, repeat. Start reading here.

`stream` is the only way in; the command line, the bench and the tests all use it. Next: `scheduler.py` (who
runs), `models/llama.py` (the scores), `sampling/choose.py` (the choice), `tokens/stream.py` (ids to text).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from tokenglass import kernels
from tokenglass.engine.request import Piece, Request, Sequence
from tokenglass.engine.scheduler import Scheduler
from tokenglass.models.batch import Batch
from tokenglass.sampling import choose
from tokenglass.sampling.candidates import Scores
from tokenglass.tokens import Tokenizer


class Model(Protocol):
    """What the loop needs of a model: `forward`. The rest says what runs and what one token must read."""

    notes: list[str]

    @property
    def kv_bytes_per_token(self) -> int: ...
    @property
    def cpu(self) -> kernels.Cpu: ...
    @property
    def products(self) -> list[kernels.Linear]: ...
    def read_weights(self) -> None: ...
    def forward(self, batch: Batch) -> Scores: ...


class Engine:
    """One model and the requests that run on it. Made by `engine.load`. Not for two threads at once."""

    def __init__(self, model: Model, scheduler: Scheduler, tokenizer: Tokenizer) -> None:
        self.model = model
        self.scheduler = scheduler
        self.tokenizer = tokenizer

    @property
    def context_length(self) -> int:
        """Prompt and answer together may have this many tokens."""
        return self.scheduler.context_length

    def stream(self, request: Request) -> Generator[Piece]:
        """The answer, piece by piece as it is made; the last piece says why it ended.

        Several streams may be open; each step serves them all. Closing the iterator drops the request.
        """
        return self.follow(self.submit(request))

    def submit(self, request: Request, *, reuse: Sequence | None = None, keep: bool = False) -> Sequence:
        """Queues a request without running it; `follow` reads it. ContextFullError, ParameterError: it can
        never run. `reuse` and `keep`: from one turn of a conversation to the next (`conversation.py`).
        """
        return self.scheduler.submit(request, reuse=reuse, keep=keep)

    def follow(self, sequence: Sequence) -> Generator[Piece]:
        """The pieces of a submitted sequence, stepping the engine whenever none is ready.

        ModelOutputError: the model's logits leave nothing to choose; other sequences go on.
        """
        pieces = self._follow(sequence)
        next(pieces)  # into its `try`: from here on closing it drops the request, read or not
        return pieces

    def _follow(self, sequence: Sequence) -> Generator[Piece]:
        try:
            yield Piece("")  # taken by `follow`
            while True:
                while sequence.pieces:
                    yield sequence.pieces.pop(0)
                if sequence.error:
                    raise sequence.error
                if sequence.finish_reason:
                    return
                self.step()
        finally:
            self.scheduler.drop(sequence)

    def step(self) -> list[Sequence]:
        """One forward pass and one token for every sequence that has its prompt behind it."""
        step = self.scheduler.next()
        logits = self.model.forward(step.batch)
        choices = choose(logits, step.draws)
        return self.scheduler.commit(step, choices)
