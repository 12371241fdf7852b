"""This engine as a contender: through its own scheduler, one step after the other, as `stream` does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tokenglass.engine import Engine, Request
from tokenglass.engine.request import Sequence as Running


@dataclass(frozen=True)
class Times:
    """Seconds until every prompt has its first token, and from there to the last; ids of the first answer."""

    first_token_s: float
    rest_s: float
    token_ids: tuple[int, ...]


class Contender(Protocol):
    """An engine that can be measured."""

    @property
    def name(self) -> str: ...
    def generate(self, prompts: Sequence[Sequence[int]], num_tokens: int, *, keep: bool = False) -> Times:
        """Exactly `num_tokens` greedy tokens after each prompt, all prompts together, end tokens ignored.

        Nothing is kept from the call before. keep: the prompt's cache may be, for the next call that asks for
        the same prompt; only `rest_s` counts then.
        """


@dataclass(frozen=True)
class Phase:
    """Seconds of some steps; with the clock inside operations on, also of those and of the products alone."""

    seconds: float
    op_s: float
    product_s: float


class Ours:
    """The engine of `tokenglass run`."""

    name = "tokenglass"

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._kept: dict[int, Running] = {}  # by the length of the prompt

    def generate(self, prompts: Sequence[Sequence[int]], num_tokens: int, *, keep: bool = False) -> Times:
        """As `Contender` says; ContextFullError: no room for them."""
        first, rest, ids = self._run(prompts, num_tokens, keep)
        return Times(first.seconds, rest.seconds, ids)

    def inside(
        self, prompts: Sequence[Sequence[int]], num_tokens: int, *, keep: bool = False
    ) -> tuple[Phase, Phase]:
        """The same with a clock around each operation, which costs a little time itself."""
        cpu = self.engine.model.cpu
        cpu.is_timed = True
        try:
            first, rest, _ = self._run(prompts, num_tokens, keep)
        finally:
            cpu.is_timed = False
        return first, rest

    def _run(
        self, prompts: Sequence[Sequence[int]], num_tokens: int, keep: bool
    ) -> tuple[Phase, Phase, tuple[int, ...]]:
        scheduler = self.engine.scheduler
        running = [
            self.engine.submit(
                Request(prompt_ids=ids, max_tokens=num_tokens, ignore_eos=True),
                reuse=self._kept.get(len(ids)) if keep else None,
                keep=keep,
            )
            for ids in prompts
        ]
        try:
            first = self._steps(running, lambda sequence: bool(sequence.output_ids))
            rest = self._steps(running, lambda sequence: sequence.finish_reason is not None)
        finally:
            for sequence in running:
                scheduler.drop(sequence)
        if keep:
            self._kept[len(prompts[0])] = running[0]
        return first, rest, tuple(running[0].output_ids)

    def _steps(self, running: Sequence[Running], is_done: Callable[[Running], bool]) -> Phase:
        cpu = self.engine.model.cpu
        cpu.op_seconds = cpu.product_seconds = 0.0
        started_s = time.perf_counter()
        while not all(map(is_done, running)):
            self.engine.step()
            for sequence in running:
                if sequence.error:
                    raise sequence.error
        return Phase(time.perf_counter() - started_s, cpu.op_seconds, cpu.product_seconds)

    def weight_bytes(self) -> int:
        """Bytes of weights that one step reads."""
        return sum(product.num_bytes for product in self.engine.model.products)

    def multiply_adds(self, num_rows: int) -> int:
        """Of a prompt's step: every product for each row, but the last, the head, for one."""
        *blocks, head = (product.num_weights for product in self.engine.model.products)
        return num_rows * sum(blocks) + head
