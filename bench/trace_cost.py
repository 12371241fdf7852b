"""What a trace costs: decode steps with reasons (five candidates) and without, on the default model.

    python bench/trace_cost.py [MODEL]              # prints one JSON line and appends it to bench/results

The claim: below 3% with reasons, nothing without (no reasons are made when nobody asks). Two engines take one
step each in turns, so that the machine is as fast for the one as for the other; the cost is the median of the
differences between neighbouring steps, over the median step without. `control` compares two engines that both
have no trace: what is left there is noise. `file` is what writing every event as JSON takes on top.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tokenglass.bench.machine import commit, describe_machine
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.listen import events
from tokenglass.hub import DEFAULT_MODEL, resolve
from tokenglass.sampling import Sampling
from tokenglass.trace import TokenEvent, write_event

RESULTS = Path(__file__).parent / "results" / "trace_cost.jsonl"
NUM_STEPS, NUM_SHOWN = 1500, 5
SETTINGS = {
    "greedy": Sampling(seed=1),
    "temperature 1, top-p 0.9": Sampling(temperature=1.0, top_p=0.9, seed=1),
}


def steps(engine: Engine, sampling: Sampling, kind: str) -> Iterator[object]:
    """One answer's decode steps; `kind`: off, on or file."""
    request = Request(
        prompt_ids=engine.tokenizer.encode("The sky is blue because"),
        sampling=sampling,
        max_tokens=NUM_STEPS + 2,
        ignore_eos=True,
        trace_top=None if kind == "off" else NUM_SHOWN,
    )
    pieces = engine.stream(request)
    if kind == "off":
        return pieces
    told = events(engine, request, pieces)
    return told if kind == "on" else written(told)


def written(told: Iterator[TokenEvent]) -> Iterator[TokenEvent]:
    file = io.StringIO()
    for event in told:
        write_event(file, event)
        yield event


def cost(engines: list[Engine], sampling: Sampling, kind: str) -> tuple[float, float]:
    """(median seconds of a step without, share of it that `kind` takes on top)."""
    arms = [steps(engine, sampling, name) for engine, name in zip(engines, ("off", kind), strict=True)]
    for arm in arms:  # the prompt, and one step to warm up
        next(arm), next(arm)
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(NUM_STEPS):
        for which in (0, 1) if number % 2 else (1, 0):
            start = time.perf_counter()
            next(arms[which])
            seconds[which].append(time.perf_counter() - start)
    off = statistics.median(seconds[0])
    return off, statistics.median(b - a for a, b in zip(*seconds, strict=True)) / off


def main() -> None:
    model = resolve(sys.argv[1] if len(sys.argv) > 1 else DEFAULT_MODEL)
    engines = [load(model), load(model)]
    record: dict[str, object] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": describe_machine(),
        "steps": NUM_STEPS,
    }
    for name, sampling in SETTINGS.items():
        figures = {kind: cost(engines, sampling, kind) for kind in ("off", "on", "file")}
        record[name] = {
            "step_ms": round(statistics.median(off for off, _ in figures.values()) * 1e3, 3),
            **{"control" if kind == "off" else kind: round(share, 4) for kind, (_, share) in figures.items()},
        }
    line = json.dumps(record)
    print(line)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write(line + "\n")


if __name__ == "__main__":
    main()
