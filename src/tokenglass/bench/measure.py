"""Measures an engine in rounds: prefill, decode, and for our own the share of Python and of memory's limit.

Everyone is asked the same way: these ids, that many tokens, greedy, end tokens ignored. Then
    prefill tokens/s = prompt tokens / time until the first token is chosen
    decode tokens/s  = tokens after the first / time after the first
Each round starts the text at another place, so that no engine can reuse what it cached of the round before.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tokenglass.bench.machine import read_bytes_per_s
from tokenglass.engine import Engine, Request
from tokenglass.errors import TokenglassError

TEXT = (
    "A language model does one thing: it scores every token that could come next. To score them it "
    "reads all of its weights, layer by layer, and the keys and values of everything that was said "
    "before. One token is then chosen and appended, and the whole begins again. Reading is what takes "
    "the time: memory delivers some tens of gigabytes a second, and the processor waits for it. A "
    "prompt is different. Its tokens are all known, so each weight that arrives is used for many of "
    "them, and now memory waits for the processor. "
)
Results = dict[str, dict[str, list[float]]]  # metric -> engine -> one value for each round


@dataclass(frozen=True)
class Plan:
    """What one measurement consists of. Lengths in tokens."""

    rounds: int = 5
    prefills: tuple[int, ...] = (512, 128)
    decode_prompt: int = 16
    decode: int = 128

    @property
    def num_ids(self) -> int:
        """Ids of text that the rounds need, all starts included."""
        return max(*self.prefills, self.decode_prompt) + self.rounds

    def within(self, context_length: int) -> Plan:
        """The same with lengths cut to what a small window holds."""
        room = context_length - 1
        decode_prompt = min(self.decode_prompt, room // 2)
        return replace(
            self,
            prefills=tuple(dict.fromkeys(min(length, room) for length in self.prefills)),
            decode_prompt=decode_prompt,
            decode=min(self.decode, room - decode_prompt),
        )

    @property
    def positions(self) -> int:
        """The context that is enough for every part."""
        return max(*self.prefills, self.decode_prompt + self.decode) + 1


@dataclass(frozen=True)
class Times:
    """Seconds from the request to the first token, and from there to the last; and the ids."""

    first_token_s: float
    rest_s: float
    token_ids: tuple[int, ...]


class Contender(Protocol):
    """An engine that can be measured."""

    @property
    def name(self) -> str: ...
    def generate(self, ids: Sequence[int], num_tokens: int) -> Times:
        """Exactly `num_tokens` greedy tokens after `ids`, with nothing kept from the call before."""


class Ours:
    """This engine as `tokenglass run` uses it: through `stream`, the making of text included."""

    name = "tokenglass"

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def generate(self, ids: Sequence[int], num_tokens: int) -> Times:
        """The tokens and their times; ContextFullError: no room for them."""
        request = Request(prompt_ids=ids, max_tokens=num_tokens, ignore_end=True)
        pieces = list(self.engine.stream(request))
        timings = pieces[-1].timings
        token_ids = tuple(token for piece in pieces for token in piece.token_ids)
        return Times(timings.time_to_first_token_s, timings.decode_s, token_ids)

    def python_share(self, ids: Sequence[int], num_tokens: int) -> float:
        """(step - time inside operations) / step, over the decode steps. Measured apart from `generate`: the
        clock that is read around each operation costs time too.
        """
        cpu = self.engine.model.cpu
        cpu.is_timed = True
        try:
            stream = self.engine.stream(Request(prompt_ids=ids, max_tokens=num_tokens, ignore_end=True))
            next(stream)  # the prompt
            cpu.op_seconds, started_s = 0.0, time.perf_counter()
            for _ in stream:
                pass
            return 1 - cpu.op_seconds / (time.perf_counter() - started_s)
        finally:
            cpu.is_timed = False

    def weight_bytes(self) -> int:
        """Bytes of weights that one decoded token reads."""
        return sum(product.num_bytes for product in self.engine.model.products)


def measure(
    ours: Ours, peers: Sequence[Contender], plan: Plan, *, on_round: Callable[[int], None] = lambda _: None
) -> Results:
    """Rounds of A B A B …: each engine is measured once in every round, and only one runs at a time."""
    ids = text_ids(ours.engine, plan.num_ids)
    for contender in (ours, *peers):
        contender.generate(ids[: max(plan.prefills)], 2)  # first touch of buffers, not counted
    results: Results = {}
    for i in range(plan.rounds):
        on_round(i)
        for contender in (ours, *peers):
            _add(results, contender.name, measure_round(contender, ids[i:], plan))
        _add(results, ours.name, own_share(ours, ids[i:], plan, results))
    return results


def measure_round(contender: Contender, ids: Sequence[int], plan: Plan) -> dict[str, float]:
    """Tokens per second of each part, once."""
    rates = {
        f"prefill_{n}_tokens_per_s": n / contender.generate(ids[:n], 1).first_token_s for n in plan.prefills
    }
    rest_s = contender.generate(ids[: plan.decode_prompt], plan.decode).rest_s
    return {**rates, "decode_tokens_per_s": (plan.decode - 1) / rest_s}


def own_share(ours: Ours, ids: Sequence[int], plan: Plan, results: Results) -> dict[str, float]:
    """How near the round's decoding came to what memory allows, and how much of it was Python."""
    bytes_per_s = results["decode_tokens_per_s"][ours.name][-1] * ours.weight_bytes()
    model = ours.engine.model
    limit = read_bytes_per_s(ours.weight_bytes(), model.read_weights)
    return {
        "decode_bytes_per_s": bytes_per_s,
        "limit_bytes_per_s": limit,
        "share_of_limit": bytes_per_s / limit,
        "python_share": ours.python_share(ids[: plan.decode_prompt], min(plan.decode, 32)),
    }


def cold_start(command: Sequence[str]) -> dict[str, float]:
    """Seconds from starting a process to its first token, and its peak memory.

    `command` prints one JSON line, with `memory_bytes`, when it has the token. TokenglassError: it failed.
    """
    started_s = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TOKENGLASS_NOTES": "0"},  # these runs are part of one measurement
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        took_s = time.perf_counter() - started_s
        _, err = process.communicate()
    if process.returncode != 0 or not line:
        raise TokenglassError(
            f"the cold start failed: {' '.join(err.splitlines()[-1:]) or 'it said nothing'}"
        )
    record = json.loads(line)
    memory = record.get("timings", record)["memory_bytes"]
    return {"cold_start_s": took_s, **({"memory_bytes": memory} if memory else {})}


def our_cold_start(path: Path, num_threads: int) -> list[str]:
    """The command whose cold start is ours."""
    options = ["--max-tokens", "1", "--threads", str(num_threads), "--json"]
    return [sys.executable, "-m", "tokenglass", "run", "The capital of France is", "-m", str(path), *options]


def text_ids(engine: Engine, num_ids: int) -> list[int]:
    """That many ids of running English text."""
    ids: list[int] = []
    while len(ids) < num_ids:
        ids += engine.tokenizer.encode(TEXT, bos=False)
    return ids[:num_ids]


def hash_of(ours: Ours, plan: Plan) -> str:
    """Hash of what the first round decodes: equal on every machine, or something else was measured."""
    ids = text_ids(ours.engine, plan.num_ids)[: plan.decode_prompt]
    text = ours.engine.tokenizer.decode(ours.generate(ids, plan.decode).token_ids)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _add(results: Results, name: str, values: dict[str, float]) -> None:
    for metric, value in values.items():
        results.setdefault(metric, {}).setdefault(name, []).append(value)
