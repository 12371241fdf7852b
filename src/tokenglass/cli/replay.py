"""`tokenglass replay FILE`: runs a stored trace again and checks that every token comes out the same.

The trace (written by `run --trace-file`) says the model, the prompt's ids and every setting. `--show` prints
what is stored and runs nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenglass.cli.language import t
from tokenglass.cli.model_options import find_model
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.record import field, identity, request_of
from tokenglass.cli.trace_view import label, trace_printer
from tokenglass.engine import Engine, Request, load
from tokenglass.trace import TokenEvent, event_json, read_trace

DIFFERENT = 1


def main(arguments: list[str]) -> int:
    """Status 0: the same tokens and the same end; 1: not, and where they part."""
    values = replay_parser().values(arguments)
    header, events = read_trace(values["file"])
    request = request_of(header)
    if values["show"]:
        show(header, events, request, as_json=values["json"])
        return 0
    engine = load_again(header, values["model"], values["threads"], values["trust_remote_code"])
    result = compare(engine, request, events)
    if values["json"]:
        write(json.dumps(result, ensure_ascii=False) + "\n")
    else:
        write(verdict(result, engine) + "\n")
    return 0 if result["equal"] else DIFFERENT


def replay_parser() -> Parser:
    """The parser behind `tokenglass replay --help`."""
    parser = Parser("replay", "Run a stored trace again and check that every token is the same.")
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="what run --trace-file wrote")
    add("-m", "--model", metavar="MODEL", help="path or name (default: the one that the trace names)")
    add("--threads", type=int, metavar="N", help="default: the processors this process may use")
    add(
        "--trust-remote-code",
        action="store_true",
        help="of transformers: let Python files of the model run. They can do whatever you can",
    )
    add("--show", action="store_true", help="print the stored trace, run nothing")
    add("--json", action="store_true", help="one JSON object with the result; with --show the whole trace")
    return parser


def show(header: dict[str, Any], events: list[TokenEvent], request: Request, *, as_json: bool) -> None:
    """The stored trace on stdout, drawn as `run --trace` draws it, and the text it makes."""
    import sys

    if as_json:
        write(json.dumps([header, *map(event_json, events)], ensure_ascii=False) + "\n")
        return
    draw = trace_printer(request.sampling, sys.stdout)
    for event in events:
        draw(event)
    write("".join(event.text for event in events) + "\n")


def load_again(header: dict[str, Any], model: str | None, threads: int | None, trust: bool) -> Engine:
    """The engine as it was for the trace; says so where the model file is another one."""
    named, settings = field(header, "model", dict), field(header, "settings", dict)
    path = find_model(model or field(named, "name", str))
    now = identity(path)
    if any(named.get(what) != now[what] for what in ("num_bytes", "sha256")):
        say(t("{file} is not the file of the trace: tokens may differ", file=path.name))
    return load(
        path,
        num_threads=threads,
        activations=field(settings, "activations", str),
        kv=field(settings, "kv", str),
        context_length=field(settings, "context_length", int),
        weights=settings.get("weights"),
        engine=settings.get("engine", "tokenglass"),  # traces of before these three say nothing
        device=settings.get("device", "cpu"),
        dtype=settings.get("dtype"),
        trust_remote_code=trust,
    )


def compare(engine: Engine, request: Request, events: list[TokenEvent]) -> dict[str, Any]:
    """Runs until the stored tokens end or one differs. An interrupted trace is compared as far as it goes."""
    stored = [event.decision.token_id for event in events]
    equal = 0
    difference: dict[str, Any] | None = None
    end = events[-1].finish_reason if events else None
    for piece in engine.stream(request):
        for token_id in piece.token_ids:
            if equal == len(stored) or stored[equal] != token_id:
                expected = stored[equal] if equal < len(stored) else None
                difference = {"index": equal, "trace": expected, "now": token_id}
                break
            equal += 1
        if difference or (equal == len(stored) and end is None):
            break
        if equal == len(stored) and piece.finish_reason != end:
            difference = {"index": equal, "trace": end, "now": piece.finish_reason}
            break
    if difference is None and equal < len(stored):
        difference = {"index": equal, "trace": stored[equal], "now": None}
    return {
        "equal": difference is None,
        "equal_tokens": equal,
        "stored_tokens": len(stored),
        "first_difference": difference,
    }


def verdict(result: dict[str, Any], engine: Engine) -> str:
    """The result in one line."""
    difference = result["first_difference"]
    if difference is None:
        return t("all {n} tokens are the same", n=result["stored_tokens"])
    return t(
        "token {n} differs: {before} in the trace, {now} now; {equal} before it are the same",
        n=difference["index"] + 1,
        before=named_token(difference["trace"], engine),
        now=named_token(difference["now"], engine),
        equal=result["equal_tokens"],
    )


def named_token(token: int | str | None, engine: Engine) -> str:
    """`260 " the"`; how an answer ended is said as it is."""
    vocabulary = engine.tokenizer.vocabulary
    if isinstance(token, int) and 0 <= token < vocabulary.num_tokens:
        return f"{token} {label(vocabulary.token_bytes(token))}"
    return str(token)
