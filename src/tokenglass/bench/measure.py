"""Measures engines in rounds: prefill, decode, several at once, cold starts; ours against the limits too.

Everyone is asked the same way (`ours.py`, `Contender`), in turns, and only one runs at a time. Then
    prefill tokens/s = prompt tokens / time until the first token is chosen
    decode tokens/s  = tokens after the first / time after the first, of all requests together
A prompt begins at another place in each round, so that nothing cached of the round before is of use.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenglass.bench.machine import int8_per_s, read_bytes_per_s
from tokenglass.bench.ours import Contender, Ours
from tokenglass.bench.plan import Plan, text_ids
from tokenglass.errors import TokenglassError
from tokenglass.kernels import cpu, read_all

Results = dict[str, dict[str, list[float]]]  # metric -> engine -> one value for each round


def measure(
    ours: Ours, peers: Sequence[Contender], plan: Plan, *, on_round: Callable[[int], None] = lambda _: None
) -> Results:
    """Rounds of A B A B …: each engine is measured once in every round."""
    ids = text_ids(ours.engine.tokenizer, plan.num_ids)
    for contender in (ours, *peers):
        warm_up(contender, ids, plan)
    results: Results = {}
    for i in range(plan.rounds):
        on_round(i)
        add(results, ours.name, machine_limits(ours))
        for contender in (ours, *peers):
            add(results, contender.name, measure_round(contender, ids, plan, i))
        add(results, ours.name, own_shares(ours, ids, plan, results))
    return results


def warm_up(contender: Contender, ids: Sequence[int], plan: Plan) -> None:
    """First touch of buffers, and the caches that stand before what is decoded; not counted."""
    for length in plan.prefills[:1]:
        contender.generate([ids[:length]], 2)
    for depth in plan.depths:
        contender.generate([ids[: depth or 1]], 2, keep=True)
    for num in plan.rows:
        contender.generate(plan.prompts(ids, num), 2)


def measure_round(contender: Contender, ids: Sequence[int], plan: Plan, start: int) -> dict[str, float]:
    """Tokens per second of each part, once."""
    values = {}
    for n in plan.prefills:
        values[f"prefill_{n}_tokens_per_s"] = (
            n / contender.generate([ids[start : start + n]], 1).first_token_s
        )
    for depth in plan.depths:
        rest_s = contender.generate([ids[: depth or 1]], plan.decode, keep=True).rest_s
        values[f"decode_{depth}_tokens_per_s"] = (plan.decode - 1) / rest_s
    for num in plan.rows:
        rest_s = contender.generate(plan.prompts(ids[start:], num), plan.decode).rest_s
        values[f"rows_{num}_tokens_per_s"] = num * (plan.decode - 1) / rest_s
        values[f"rows_{num}_step_s"] = rest_s / (plan.decode - 1)
    return values


def machine_limits(ours: Ours) -> dict[str, float]:
    """What memory and the processor allow at this moment: bytes/s of reading the model's own weights with one
    and with all threads, and multiply-adds/s of int8.
    """
    model, num_bytes = ours.engine.model, ours.weight_bytes()
    one = cpu(1, model.cpu.isa)
    return {
        "read_1_bytes_per_s": read_bytes_per_s(num_bytes, lambda: read_all(model.products, one)),
        "read_bytes_per_s": read_bytes_per_s(num_bytes, model.read_weights),
        "int8_per_s": int8_per_s(model.cpu),
    }


def own_shares(ours: Ours, ids: Sequence[int], plan: Plan, results: Results) -> dict[str, float]:
    """How near this round came to the limits, as a whole and the products alone, and how much was Python.

    Bytes of a decoded token = all weights + the keys and values before it.
    """

    def newest(metric: str) -> float:
        return results[metric][ours.name][-1]

    values, steps, model = {}, plan.decode - 1, ours.engine.model
    for n in plan.prefills:
        first, _ = ours.inside([ids[:n]], 1)
        work, peak = ours.multiply_adds(n), newest("int8_per_s")
        values[f"prefill_{n}_share"] = work / n * newest(f"prefill_{n}_tokens_per_s") / peak
        values[f"prefill_{n}_products_share"] = work / first.product_s / peak
    for depth in plan.depths:
        _, rest = ours.inside([ids[: depth or 1]], plan.decode, keep=True)
        num_bytes = ours.weight_bytes() + model.kv_bytes_per_token * (depth + plan.decode // 2)
        rate, limit = newest(f"decode_{depth}_tokens_per_s"), newest("read_bytes_per_s")
        values[f"decode_{depth}_bytes_per_s"] = num_bytes * rate
        values[f"decode_{depth}_share"] = num_bytes * rate / limit
        values[f"decode_{depth}_products_share"] = ours.weight_bytes() * steps / rest.product_s / limit
        values[f"decode_{depth}_python_share"] = 1 - rest.op_s / rest.seconds
    return values


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
        # These runs are part of one measurement; and what is installed starts from its bytecode.
        env={**os.environ, "TOKENGLASS_NOTES": "0", "PYTHONDONTWRITEBYTECODE": ""},
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


def hash_of(ours: Ours) -> str:
    """Hash of a short answer: equal on every machine, or something else was measured."""
    tokenizer = ours.engine.tokenizer
    answer = ours.generate([text_ids(tokenizer, 16)], 32).token_ids
    return hashlib.sha256(tokenizer.decode(answer).encode()).hexdigest()[:12]


def add(results: Results, name: str, values: dict[str, float]) -> None:
    """Books one value of each metric for the engine `name`."""
    for metric, value in values.items():
        results.setdefault(metric, {}).setdefault(name, []).append(value)
