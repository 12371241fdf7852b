"""`tokenglass bench`: what this machine does with a model, alone or beside other engines on the same file.

What is measured: `bench/plan.py`, and how: `bench/measure.py`. `bench compare A B`: `bench_compare.py`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tokenglass import __version__
from tokenglass.bench import peers
from tokenglass.bench.llama_cpp import requantised
from tokenglass.bench.machine import commit, describe_machine
from tokenglass.bench.measure import Results, add, cold_start, hash_of, measure, our_cold_start
from tokenglass.bench.ours import Ours
from tokenglass.bench.peers import PeerInfo
from tokenglass.bench.plan import FULL, PARTS, QUICK, Plan
from tokenglass.bench.table import text_table
from tokenglass.cli.journal import note_bench
from tokenglass.cli.language import t
from tokenglass.cli.model_options import add_model, find_model
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.engine import load
from tokenglass.engine.load import MAX_RUNNING
from tokenglass.errors import ParameterError
from tokenglass.sampling.params import check_integer

EPILOG = (
    "tokenglass bench compare A B: two files of --json results, and which differences are only noise. "
    "Prefill is held against the int8 peak of the processor, decoding against the speed of memory."
)


def main(arguments: list[str]) -> int:
    """Measures, and prints a table or (--json) one JSON line."""
    if arguments[:1] == ["compare"]:
        from tokenglass.cli.bench_compare import compare

        return compare(arguments[1:])
    options = bench_parser().values(arguments)
    plan = plan_of(options)
    infos = peers.find_peers(options["vs"])
    path = find_model(options["model"])
    ours = Ours(load(path, num_threads=options["threads"]))
    plan = fitting(plan, ours.engine.context_length, options)
    num_threads = ours.engine.model.cpu.num_threads
    with ExitStack() as stack:
        files = files_of(infos, path, num_threads, stack)
        others = [
            stack.enter_context(
                peers.Peer(info, files[info], num_threads=num_threads, positions=plan.positions)
            )
            for info in files
        ]
        results = measure(
            ours, others, plan, on_round=lambda i: say(t("round {i} of {n}", i=i + 1, n=plan.rounds))
        )
        for contender in others:  # a cold start begins with free memory
            contender.close()
        add_cold_starts(results, path, files, num_threads, plan.cold_starts)
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "version": __version__,
        "machine": {**describe_machine(), "num_threads": num_threads, "isa": ours.engine.model.cpu.isa},
        "model": path.name,
        "plan": vars(plan),
        "peers": [info.record() for info in files],
        "results": results,
        "sha256": hash_of(ours),
    }
    write((json.dumps(record) if options["json"] else report(record)) + "\n")
    note_bench(record)
    return 0


def bench_parser() -> Parser:
    """The parser behind `tokenglass bench --help`."""
    parser = Parser(
        "bench", "Measure this machine: tokens per second and the share of what it allows.", epilog=EPILOG
    )
    add = parser.add_argument
    add_model(parser)
    add(
        "--vs",
        type=names,
        default=[],
        metavar="NAMES",
        help="measure these too, in turns: llama.cpp, transformers, openvino",
    )
    add("--only", type=names, metavar="PARTS", help="only these: prefill, decode, rows, cold")
    add("--full", action="store_true", help="longer prompts, deeper texts, 5 rounds: some minutes")
    add("--prefill", type=numbers, metavar="N,N", help="lengths of the prompts")
    add("--decode", type=numbers, metavar="N,N", help="tokens that stand before those that are decoded")
    add("--rows", type=numbers, metavar="N,N", help="how many requests step together")
    add("-n", "--rounds", type=int, metavar="N", help="how often everything is measured (default: 3)")
    add("--threads", type=int, metavar="N", help="default: one for each core that may be used")
    add("--json", action="store_true", help="one JSON line with every single value, commit and machine")
    return parser


def plan_of(options: dict[str, Any]) -> Plan:
    """What to measure. ParameterError: a number outside its range, a part nobody knows."""
    plan = FULL if options["full"] else QUICK
    for name, low, high in (("prefill", 1, 1 << 20), ("decode", 0, 1 << 20), ("rows", 1, MAX_RUNNING)):
        for value in options[name] or ():
            check_integer(name, value, low, high)
    plan = replace(
        plan,
        prefills=tuple(options["prefill"] or plan.prefills),
        depths=tuple(options["decode"] or plan.depths),
        rows=tuple(options["rows"] or plan.rows),
    )
    if options["rounds"] is not None:
        check_integer("rounds", options["rounds"], 1, 1000)
        plan = replace(plan, rounds=options["rounds"])
    if options["only"] is not None:
        for part in options["only"]:
            if part not in PARTS:
                raise ParameterError("--only", f"takes {', '.join(PARTS)}, not {part!r}")
        plan = plan.only(options["only"])
    return plan


def fitting(plan: Plan, window: int, options: dict[str, Any]) -> Plan:
    """What a window of so many tokens holds of the plan. ParameterError: not all that was named."""
    kept = plan.within(window)
    for name, asked, left in (
        ("prefill", plan.prefills, kept.prefills),
        ("decode", plan.depths, kept.depths),
        ("rows", plan.rows, kept.rows),
    ):
        too_much = [value for value in asked if value not in left] if options[name] else []
        if too_much or (asked and not left):
            value = (too_much or asked)[0]
            raise ParameterError(name, f"of {value} is more than the context window of {window} tokens holds")
    return kept


def names(argument: str) -> list[str]:
    """`a,b` as a list."""
    return argument.split(",")


def numbers(argument: str) -> list[int]:
    """`128,512` as numbers."""
    try:
        return [int(number) for number in argument.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas, like 128,512, not {argument!r}"
        ) from None


def files_of(infos: list[PeerInfo], path: Path, num_threads: int, stack: ExitStack) -> dict[PeerInfo, Path]:
    """Which file each peer runs: this one, and llama.cpp also its best form of it, made in a folder that the
    stack removes.
    """
    files = {}
    for info in infos:
        files[info] = path
        if info.kind == "llama.cpp":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            say(t("llama.cpp makes its Q4_0 of {name}", name=path.name))
            if requantised(path, folder / "q4_0.gguf", num_threads):
                best = PeerInfo(info.kind, "Q4_0", info.version, info.how)
                files[best] = folder / "q4_0.gguf"
            else:
                say(t("llama.cpp cannot make a Q4_0 of {name}: only the file as it is", name=path.name))
    return files


def add_cold_starts(
    results: Results, path: Path, files: dict[PeerInfo, Path], num_threads: int, num_starts: int
) -> None:
    """Starts fresh processes, in turns, and adds how long each took to its first token and its memory."""
    commands = {"tokenglass": our_cold_start(path, num_threads)}
    for info, file in files.items():
        if info.kind == "llama.cpp":
            commands[info.name] = peers.cold_start_command(file, num_threads)
    for _ in range(num_starts):
        for name, command in commands.items():
            add(results, name, cold_start(command))


def report(record: dict[str, Any]) -> str:
    """The table, what was measured, and on what."""
    plan, machine = record["plan"], record["machine"]
    chip = {key: machine[key] for key in ("isa", "cpu")}
    lines = [
        text_table(record),
        "",
        t("{model}, {n} threads, {isa}, {cpu}", model=record["model"], n=machine["num_threads"], **chip),
        t(
            "median (min-max) of {rounds} rounds; {decode} tokens decoded; "
            "cold start: new process to first token; sha256 {sha256}",
            rounds=plan["rounds"],
            decode=plan["decode"],
            sha256=record["sha256"],
        ),
    ]
    lines += [t("{name} ({version}): {how}; ratio: ours / theirs", **peer) for peer in record["peers"]]
    return "\n".join(lines)
