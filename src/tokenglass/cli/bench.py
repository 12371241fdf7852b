"""`tokenglass bench`: what this machine does with a model, alone or beside llama.cpp on the same file."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tokenglass import __version__
from tokenglass.bench import peers
from tokenglass.bench.machine import commit, describe_machine
from tokenglass.bench.measure import Ours, Plan, Results, cold_start, hash_of, measure, our_cold_start
from tokenglass.bench.table import text_table
from tokenglass.cli.journal import note_bench
from tokenglass.cli.language import t
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.progress import download_progress
from tokenglass.engine import load
from tokenglass.hub import DEFAULT_MODEL, resolve
from tokenglass.sampling.params import check_integer

COLD_STARTS = 3


def main(arguments: list[str]) -> int:
    """Measures, and prints a table or (--json) one JSON line."""
    options = bench_parser().values(arguments)
    plan = plan_of(options)
    peer = peers.describe() if options["vs"] else None
    with download_progress() as progress:
        path = resolve(options["model"], progress=progress)
    ours = Ours(load(path, num_threads=options["threads"]))
    plan = plan.within(ours.engine.context_length)
    num_threads = ours.engine.model.cpu.num_threads
    with ExitStack() as stack:
        others = [
            stack.enter_context(peers.LlamaCpp(path, num_threads=num_threads, positions=plan.positions))
            for _ in ([peer] if peer else [])
        ]
        results = measure(
            ours, others, plan, on_round=lambda i: say(t("round {i} of {n}", i=i + 1, n=plan.rounds))
        )
    add_cold_starts(results, path, num_threads, has_peer=peer is not None)
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "version": __version__,
        "machine": {**describe_machine(), "num_threads": num_threads, "isa": ours.engine.model.cpu.isa},
        "model": path.name,
        "plan": vars(plan),
        "peer": peer,
        "results": results,
        "sha256": hash_of(ours, plan),
    }
    write((json.dumps(record) if options["json"] else report(record)) + "\n")
    note_bench(record)
    return 0


def bench_parser() -> Parser:
    """The parser behind `tokenglass bench --help`."""
    parser = Parser("bench", "Measure this machine: tokens per second and the share of what memory allows.")
    add = parser.add_argument
    add("-m", "--model", default=DEFAULT_MODEL, help="path of a .gguf file, or a name (default: %(default)s)")
    add("--vs", choices=("llama.cpp",), help="measure it too, in turns, on the same file (extra [peers])")
    add("-n", "--rounds", type=int, metavar="N", help="how often everything is measured (default: 5)")
    add("--quick", action="store_true", help="2 rounds unless -n is given, and one prompt length")
    add("--threads", type=int, metavar="N", help="default: the processors this process may use")
    add("--json", action="store_true", help="one JSON line with every single value, commit and machine")
    return parser


def plan_of(options: dict[str, Any]) -> Plan:
    """What to measure. ParameterError: no rounds."""
    rounds = options["rounds"] if options["rounds"] is not None else 2 if options["quick"] else Plan.rounds
    check_integer("rounds", rounds, 1, 1000)
    return Plan(rounds=rounds, prefills=Plan.prefills[:1] if options["quick"] else Plan.prefills)


def add_cold_starts(results: Results, path: Path, num_threads: int, *, has_peer: bool) -> None:
    """Starts fresh processes, in turns, and adds how long each took to its first token and its memory."""
    commands = {"tokenglass": our_cold_start(path, num_threads)}
    if has_peer:
        commands["llama.cpp"] = peers.cold_start_command(path, num_threads)
    for _ in range(COLD_STARTS):
        for name, command in commands.items():
            for metric, value in cold_start(command).items():
                results.setdefault(metric, {}).setdefault(name, []).append(value)


def report(record: dict[str, Any]) -> str:
    """The table, what was measured, and on what."""
    plan, machine, peer = record["plan"], record["machine"], record["peer"]
    chip = {key: machine[key] for key in ("isa", "cpu")}
    lines = [
        text_table(record),
        "",
        t("{model}, {n} threads, {isa}, {cpu}", model=record["model"], n=machine["num_threads"], **chip),
        t(
            "{rounds} rounds; decode: {decode} tokens after {decode_prompt}; "
            "cold start: new process to first token; sha256 {sha256}",
            **plan,
            sha256=record["sha256"],
        ),
    ]
    if peer:
        lines.append(t("{name} ({version}): {how}; ratio: ours / theirs", **peer))
    return "\n".join(lines)
