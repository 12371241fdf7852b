"""What a trace costs: decode steps with reasons (five candidates) and without, in turns on the default model.

    python bench/trace_cost.py [MODEL]              # prints one JSON line and appends it to bench/results

The claim: below 3% with reasons, nothing without (no reasons are made when nobody asks). The ratio is taken
pair by pair, so that it holds while the machine's speed drifts.
"""

from __future__ import annotations

import json
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

from tokenglass.bench.machine import commit, describe_machine
from tokenglass.engine import Engine, Request, load
from tokenglass.engine.listen import events
from tokenglass.hub import DEFAULT_MODEL, resolve
from tokenglass.sampling import Sampling

RESULTS = Path(__file__).parent / "results" / "trace_cost.jsonl"
ROUNDS, NUM_TOKENS, NUM_SHOWN = 15, 128, 5


def decode_s(engine: Engine, sampling: Sampling, *, is_traced: bool) -> float:
    """Seconds of one decode step, reasons and events included where `is_traced`."""
    request = Request(
        prompt_ids=engine.tokenizer.encode("The sky is blue because"),
        sampling=sampling,
        max_tokens=NUM_TOKENS + 1,
        ignore_end=True,
        trace_top=NUM_SHOWN if is_traced else None,
    )
    sequence = engine.submit(request)
    pieces = engine.follow(sequence)
    for _ in events(engine, request, pieces) if is_traced else pieces:
        pass
    return sequence.timings.decode_s / NUM_TOKENS


def main() -> None:
    engine = load(resolve(sys.argv[1] if len(sys.argv) > 1 else DEFAULT_MODEL))
    settings = {
        "greedy": Sampling(seed=1),
        "temperature 1, top-p 0.9": Sampling(temperature=1.0, top_p=0.9, seed=1),
    }
    ratios: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(ROUNDS):
        for name, sampling in settings.items():
            off, on = (decode_s(engine, sampling, is_traced=traced) for traced in (False, True))
            ratios[name].append(on / off)
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": describe_machine(),
        "rounds": ROUNDS,
        "cost": {name: round(statistics.median(values) - 1, 4) for name, values in ratios.items()},
        "ratios": {name: [round(value, 4) for value in values] for name, values in ratios.items()},
    }
    line = json.dumps(record)
    print(line)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write(line + "\n")


if __name__ == "__main__":
    main()
