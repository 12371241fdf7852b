"""A model that says what it is told to: a list of ids, whatever the prompt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tokenglass import kernels
from tokenglass.cache import PagePool
from tokenglass.engine import Engine, Request, worker
from tokenglass.engine.scheduler import Scheduler
from tokenglass.formats import GGUFFile
from tokenglass.models.batch import Batch
from tokenglass.tokens import Tokenizer


class ScriptedModel:
    """After a prompt of `num_prompt` ids the best next token is script[0], then script[1], …"""

    def __init__(self, script: Sequence[int], num_prompt: int, vocab: int) -> None:
        self.script, self.num_prompt, self.vocab = script, num_prompt, vocab
        self.batches: list[Batch] = []
        self.notes: list[str] = []
        self.kv_bytes_per_token = 0
        self.cpu = kernels.cpu(1)
        self.products: list[kernels.Linear] = []

    def read_weights(self) -> None:
        """There are none."""

    def forward(self, batch: Batch) -> kernels.Logits:
        self.batches.append(batch)
        rows = [piece for piece in batch.slices if piece.num_outputs]
        scores = np.zeros((len(rows), self.vocab), np.float32)
        for row, piece in enumerate(rows):
            step = piece.start + len(piece.ids) - self.num_prompt
            scores[row, self.script[min(step, len(self.script) - 1)]] = 1.0
        buffer = kernels.Rows(max(1, len(rows)), self.vocab)
        buffer.fill(scores)
        return kernels.Logits(self.cpu, buffer, self.vocab)


def scripted_engine(path: Path, script: Sequence[int], *, num_prompt: int = 1, num_pages: int = 8) -> Engine:
    """An engine with the vocabulary of the file at `path` and a scripted model."""
    with GGUFFile.open(path) as file:
        tokenizer = Tokenizer.from_gguf(file)
    vocabulary = tokenizer.vocabulary
    scheduler = Scheduler(
        PagePool(num_pages), vocabulary, context_length=num_pages * 16, max_rows=32, max_running=4
    )
    return Engine(ScriptedModel(script, num_prompt, vocabulary.num_tokens), scheduler, tokenizer)


def answer(engine: Engine, request: Request) -> tuple[list[str], str | None]:
    """The texts of all pieces, and why the last one ended."""
    pieces = list(engine.stream(request))
    return [piece.text for piece in pieces], pieces[-1].finish_reason


# The program of a worker process that `gated_worker` serves; see `tokenglass.engine.worker_process`.
GATED = (
    "import sys; sys.path[:] = sys.argv[3:]; from tests.engine.doubles import gated_worker; "
    "gated_worker(int(sys.argv[1]), int(sys.argv[2]))"
)


def gated_worker(descriptor: int, parent: int) -> None:
    """A worker whose every step waits for a letter in the FIFO named by the variable GATE: `s` steps, `x`
    fails, `n` says what is no message. Its model says the letters a to z, over and over.
    """
    gate = os.open(os.environ["GATE"], os.O_RDONLY)

    def load(path: str) -> Engine:
        engine = scripted_engine(Path(path), [0])
        single = {
            engine.tokenizer.vocabulary.token_bytes(i): i
            for i in range(engine.tokenizer.vocabulary.num_tokens)
        }
        model = engine.model
        assert isinstance(model, ScriptedModel)
        model.script = [single[bytes([97 + i % 26])] for i in range(128)]
        forward = model.forward

        def gated(batch: Batch) -> kernels.Logits:
            letter = os.read(gate, 1)
            if letter == b"x":
                raise ZeroDivisionError("the model divides by zero")
            if letter == b"n":
                os.write(descriptor, b"nonsense")
            return forward(batch)

        model.forward = gated  # type: ignore[method-assign]
        return engine

    worker.main(descriptor, parent, load)
