"""Records as JSON and back, both ways by the record's own type hints: a new field needs no line here.

JSON and not pickle: one of the two processes reads model files that may be hostile, and what it says must
not be able to run code in the other. What comes is checked against the types, and records against their own
rules, before anybody sees it. A record is a list of its fields in order: both ends are the same program.

    frame   [ 4 bytes: length, big-endian | JSON, ASCII ]

For each type expressions are put together and compiled once, as `dataclasses` does it: a step has just read
all weights, so no cache is warm, and thirty small calls take ten times as long there as in a loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

from tokenglass import errors
from tokenglass.errors import TokenglassError

HEAD_BYTES = 4
MAX_FRAME_BYTES = 1 << 30
_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_DECODE = json.JSONDecoder().decode


class WireError(ValueError):
    """What came is no message of ours."""


def frame(hint: Any, value: object) -> bytes:
    """One message. TypeError: a value that has no form in JSON."""
    body = _ENCODE(writer_of(hint)(value)).encode("ascii")
    return len(body).to_bytes(HEAD_BYTES, "big") + body


class Frames:
    """The messages in a stream of bytes, of which each part may hold several, or a piece of one."""

    def __init__(self, hint: Any) -> None:
        self._read = reader_of(hint)
        self._buffer = bytearray()

    def push(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete with `data`. ValueError: one that is too long, or none of ours."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= HEAD_BYTES:
            end = HEAD_BYTES + int.from_bytes(buffer[:HEAD_BYTES], "big")
            if end > MAX_FRAME_BYTES:
                raise WireError(f"a message of {end} bytes")
            if len(buffer) < end:
                return
            body = buffer[HEAD_BYTES:end].decode("ascii")
            del buffer[:end]
            try:
                value = _DECODE(body)
            except RecursionError:
                raise WireError("lists too deep in one another") from None
            yield self._read(value)


@cache
def writer_of(hint: Any) -> Callable[[Any], Any]:
    """Makes of a value of this type what JSON can hold. TypeError: a type that has no form here yet."""
    return _compiled(f"lambda v: {form_of(hint).write.replace('{}', 'v')}")


@cache
def reader_of(hint: Any) -> Callable[[Any], Any]:
    """The value again, out of JSON. ValueError: it is none of this type, or its own rules refuse it."""
    form = form_of(hint)
    refuse = f"{_name(_refuse)}(v, {str(hint)!r})"
    return _compiled(f"lambda v: {form.read} if {form.check} else {refuse}".replace("{}", "v"))


class Form(NamedTuple):
    """A type as three Python expressions, with `{}` for the value: what is written of it; whether what came
    may be read; and what is read then.
    """

    write: str
    check: str
    read: str


def form_of(hint: Any) -> Form:
    """How values of this type are written and read. TypeError: a type that has no form here yet."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return Form("{}", "True", "{}")  # JSON as it is
    if hint in _PLAIN:
        return Form("{}", f"type({{}}) in {_name(_PLAIN[hint])}", "{}")
    if origin is Literal:
        return Form("{}", f"{{}} in {_name(args)}", "{}")
    if origin in (Union, UnionType):
        return _union(args)
    if origin is tuple and args[1:] != (...,):
        return _record({f"[{i}]": arg for i, arg in enumerate(args)}, tuple)
    if origin in (tuple, list, Sequence):
        return _many(args[0], "{}", "tuple")
    if origin in (frozenset, AbstractSet):
        return _many(args[0], "[*{}]", "frozenset")
    if origin in (dict, Mapping):  # as pairs: JSON's own objects have only strings for keys
        return _many(tuple.__class_getitem__(args), "{}.items()", "dict")
    if isinstance(hint, type):
        if is_dataclass(hint):
            hints = get_type_hints(hint)
            return _record(
                {f".{field.name}": hints[field.name] for field in fields(hint) if field.init}, hint
            )
        if issubclass(hint, tuple) and hasattr(hint, "_fields"):
            return _record({f".{name}": each for name, each in get_type_hints(hint).items()}, hint)
        if issubclass(hint, BaseException):
            return Form(f"{_name(write_error)}({{}})", "True", f"{_name(read_error)}({{}})")
    raise TypeError(f"values of {hint} cannot be sent")


_PLAIN: dict[Any, frozenset[type]] = {
    int: frozenset({int}),
    str: frozenset({str}),
    bool: frozenset({bool}),
    float: frozenset({float, int}),
    NoneType: frozenset({NoneType}),
}


def _many(hint: Any, values: str, make: str) -> Form:
    """A list. values: the expression that gives what is in it; make: what becomes of a list that came."""
    if hint in _PLAIN:  # the ids of a long prompt are not looked at one by one
        check = f"type({{}}) is list and {_name(_PLAIN[hint])}.issuperset(map(type, {{}}))"
        return Form(values, check, f"{make}({{}})")
    write = form_of(hint).write.replace("{}", "x")
    written = values if (values, write) == ("{}", "x") else f"[{write} for x in {values}]"
    return Form(written, "type({}) is list", f"{make}([{_name(reader_of(hint))}(x) for x in {{}}])")


def _record(hints: Mapping[str, Any], make: type) -> Form:
    """A list of exactly these fields. The keys say how a field is reached: `.text`, `[0]`."""
    forms = [form_of(hint) for hint in hints.values()]
    names = [f"a{i}" for i in range(len(forms))]
    write = ", ".join(form.write.replace("{}", f"{{}}{key}") for key, form in zip(hints, forms, strict=True))
    check = " and ".join(form.check.replace("{}", name) for name, form in zip(names, forms, strict=True))
    reads = [form.read.replace("{}", name) for name, form in zip(names, forms, strict=True)]
    if is_dataclass(make):
        reads = [f"{key[1:]}={read}" for key, read in zip(hints, reads, strict=True)]
    made = f"{_name(make)}({', '.join(reads)})" if make is not tuple else f"({', '.join(reads)},)"
    refused = f"{_name(_refuse)}([{', '.join(names)}], {make.__name__!r})"
    build = _compiled(f"lambda {', '.join(names)}: {made} if {check} else {refused}")
    is_tuple = issubclass(make, tuple) and all(form.write == "{}" for form in forms)
    return Form(
        "{}" if is_tuple else f"[{write}]",
        f"type({{}}) is list and len({{}}) == {len(forms)}",
        f"{_name(build)}(*{{}})",
    )


def _union(arms: tuple[Any, ...]) -> Form:
    """None, or the value; where there are several types, with the number of its own in front."""
    some = [arm for arm in arms if arm is not NoneType]
    if len(some) == 1:
        form = form_of(some[0])
    else:
        writers, readers = [writer_of(arm) for arm in some], [reader_of(arm) for arm in some]
        kinds = [tuple(_PLAIN.get(arm, ())) or (get_origin(arm) or arm) for arm in some]

        def write(value: Any) -> list[Any]:
            for number, kind in enumerate(kinds):
                if isinstance(value, kind):
                    return [number, writers[number](value)]
            raise TypeError(f"{value!r:.80} is none of {kinds}")

        def read(value: Any) -> Any:
            number, content = value
            if type(number) is not int or not 0 <= number < len(readers):
                _refuse(number, "the number of a type")
            return readers[number](content)

        form = Form(f"{_name(write)}({{}})", "type({}) is list and len({}) == 2", f"{_name(read)}({{}})")
    if len(some) == len(arms):
        return form
    same = "{}"
    return Form(
        same if form.write == same else f"(None if {{}} is None else {form.write})",
        f"({{}} is None or {form.check})",
        same if form.read == same else f"(None if {{}} is None else {form.read})",
    )


_NAMES: dict[str, Any] = {}  # what compiled expressions name: N0, N1, …


def _name(thing: object) -> str:
    name = f"N{len(_NAMES)}"
    _NAMES[name] = thing
    return name


def _compiled(source: str) -> Callable[[Any], Any]:
    made: Callable[..., Any] = eval(source, _NAMES)
    return made


def _refuse(value: object, wanted: str) -> NoReturn:
    raise WireError(f"{value!r:.80} where {wanted} was expected")


def write_error(error: BaseException) -> Any:
    """An exception as its class, text and attributes. One that is none of ours keeps its words only."""
    name = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        file = None if error.filename is None else str(error.filename)
        kept = {"errno": error.errno, "strerror": error.strerror, "filename": file}
        return writer_of(_ERROR)(("OSError", "", kept))
    if not isinstance(error, TokenglassError):
        return write_error(TokenglassError(f"{name}: {error}"))
    attributes = {
        key: (str(value),) if isinstance(value, Path) else value
        for key, value in vars(error).items()
        if isinstance(value, str | int | float | NoneType | Path)
    }
    return writer_of(_ERROR)((name, str(error), attributes))


def read_error(value: Any) -> Exception:
    """The same class with the same words and attributes; only classes of `errors.py`, and OSError."""
    name, text, attributes = reader_of(_ERROR)(value)
    if name == "OSError":
        return OSError(*map(attributes.get, ("errno", "strerror", "filename")))
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, TokenglassError)):
        raise WireError(f"{name!r:.80} is no error of ours")
    error: TokenglassError = kind.__new__(kind)
    Exception.__init__(error, text)
    for key, item in attributes.items():
        vars(error)[key] = Path(item[0]) if isinstance(item, tuple) else item
    return error


_ERROR = tuple[str, str, Mapping[str, str | bool | int | float | tuple[str] | None]]
