"""A trace as a file: one JSON object a line; a header, then one event for each token. Version 1.

The header says what was asked, so that the run can be repeated; token bytes are base64. A line that is cut,
of another version or not ours is refused with its number.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, get_type_hints

from tokenglass.errors import UsageError
from tokenglass.trace.records import Candidate, Decision, Stage, TokenEvent

VERSION = 1
MAX_LINE = 64 << 20  # characters; far more than a header with the longest prompt, and /dev/zero has no lines


def write_header(file: TextIO, header: dict[str, Any]) -> None:
    """The first line: `header` holds model, prompt_ids and settings, as JSON can say them."""
    _write(file, {"tokenglass_trace": VERSION, **header})


def write_event(file: TextIO, event: TokenEvent) -> None:
    """One line more."""
    _write(file, event_json(event))


def event_json(event: TokenEvent) -> dict[str, Any]:
    """An event as JSON says it: bytes in base64, and null for a log-probability that is no number."""
    decision = event.decision
    return vars(event) | {
        "token_bytes": _base64(event.token_bytes),
        "top_bytes": [_base64(raw) for raw in event.top_bytes],
        "decision": decision._asdict() | {
            "logp": None if math.isinf(decision.logp) else decision.logp,
            "stages": [stage._asdict() for stage in decision.stages],
            "top": [candidate._asdict() for candidate in decision.top],
        },
    }  # fmt: skip


def read_trace(path: Path | str) -> tuple[dict[str, Any], list[TokenEvent]]:
    """(header, events) of a stored trace. UsageError: what is wrong with the file, and in which line."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            records = list(_records(path, iter(lambda: file.readline(MAX_LINE + 1), "")))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text", remedy="A trace is written by --trace-file") from None
    if not records or records[0].get("tokenglass_trace") != VERSION:
        raise UsageError(
            f"{path} is no trace of version {VERSION}", remedy="A trace is written by --trace-file"
        )
    events = []
    for number, record in enumerate(records[1:], start=2):
        try:
            events.append(_event(record))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"{path}, line {number}: not a token event ({error!r})") from None
    return records[0], events


def _event(record: dict[str, Any]) -> TokenEvent:
    values = dict(record)
    decision = dict(values.pop("decision"))
    decision["stages"] = tuple(Stage(**_checked(Stage, stage)) for stage in decision["stages"])
    decision["top"] = tuple(Candidate(**_checked(Candidate, candidate)) for candidate in decision["top"])
    is_banned = decision["logp"] is None
    decision = _checked(Decision, decision | ({"logp": 0.0} if is_banned else {}))
    if is_banned:
        decision["logp"] = -math.inf
    values["token_bytes"] = base64.b64decode(values["token_bytes"], validate=True)
    values["top_bytes"] = tuple(base64.b64decode(raw, validate=True) for raw in values.get("top_bytes", ()))
    if len(values["top_bytes"]) not in (0, len(decision["top"])):
        raise ValueError("top_bytes has not one entry for each candidate")
    return TokenEvent(decision=Decision(**decision), **_checked(TokenEvent, values))


# What a field may hold; others are made above. A file is not trusted to keep to them.
KINDS: dict[Any, tuple[type, ...]] = {
    int: (int,), float: (int, float), str: (str,), bytes: (bytes,), str | None: (str, type(None)),
}  # fmt: skip


def _checked(record: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """`values` for the fields of a record. TypeError: one of another kind; ValueError: no usable number."""
    for name, hint in get_type_hints(record).items():
        value, kinds = values.get(name), KINDS.get(hint)
        if name not in values or kinds is None:
            continue
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise TypeError(f"{name} is no {getattr(hint, '__name__', hint)}")
        if isinstance(value, int | float) and not abs(value) < 1e300:
            raise ValueError(f"{name} is out of range")
    return values


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _records(path: Path | str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE:
            raise UsageError(f"{path}, line {number}: longer than any that a trace has")
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageError(f"{path}, line {number}: not JSON; the file may be cut") from None
        if not isinstance(record, dict):
            raise UsageError(f"{path}, line {number}: not a JSON object")
        yield record


def _write(file: TextIO, record: dict[str, Any]) -> None:
    file.write(json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")
