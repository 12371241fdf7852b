"""Renders chat templates for `template_process.py`, in a process of its own. Run as a script, not imported.

A template is a program out of a model file. MiniJinja cannot reach Python or the system, and its fuel ends
endless loops, but a hostile template can still crash it (a namespace that contains itself, deep nesting) or
fill the memory: here that ends this process only. Filters and globals are those of Transformers
(`utils/chat_template_utils.py`, Apache-2.0).

In, one JSON line:  {"source", "context": {name: value}, "disguised": ... or null, "disguises", "fuel",
                     "max_chars", "now"}
Out, one JSON line: {"text", "disguised"} or {"refused": the template's words} or {"error": what is wrong}
`disguised` is the same context in disguise (`origin.py`). Its text is null where the template fails with it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

MEMORY_BYTES = 1 << 30  # address space of this process, where the platform can limit it


class Refused(Exception):  # noqa: N818 (not an error of ours: the template speaks)
    """`raise_exception` in a template: these messages do not fit it."""


def main() -> None:
    sys.path.append(sys.argv[1])  # where minijinja is installed; `-I -S` left everything else out
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        reply = answer(json.loads(line))
        sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode(errors="replace") + b"\n")
        sys.stdout.buffer.flush()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The reply to one request; every failure of the template becomes an "error"."""
    reply = rendered(request, request["context"], {})
    if "text" in reply and request["disguised"] is not None:
        reply["disguised"] = rendered(request, request["disguised"], request["disguises"]).get("text")
    return reply


def rendered(request: dict[str, Any], context: dict[str, Any], disguises: dict[str, str]) -> dict[str, Any]:
    """One text of the template, or why there is none. `disguises`: disguise -> character in `context`."""
    import minijinja

    def raise_exception(message: object = "") -> None:
        raise Refused(str(message))

    def strftime_now(form: str) -> str:
        return datetime.fromtimestamp(request["now"]).strftime(form)

    off = {ord(disguise): char for disguise, char in disguises.items()}
    try:
        environment = minijinja.Environment(
            templates={"chat": without_training_tags(request["source"])},
            filters={"tojson": tojson_of(off, whole_floats(context))},
            tests={"iterable": is_iterable, "sequence": is_sequence},
            globals={"raise_exception": raise_exception, "strftime_now": strftime_now},
            auto_escape_callback=lambda name: False,
            fuel=request["fuel"],
            debug=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        text = environment.render_template("chat", **(in_disguise(context, off) if off else context))
    except Refused as refusal:
        return {"refused": str(refusal)}
    except minijinja.TemplateError as error:
        if error.kind == "OutOfFuel":
            return {"error": "it does not come to an end: it was stopped after its share of steps"}
        return {
            "error": error.message.replace("(in <string>:", "(in line ").replace("(in chat:", "(in line ")
        }
    except Exception as error:  # noqa: BLE001 (from a filter or a global called with odd values)
        return {"error": f"{type(error).__name__}: {error}"}
    if len(text) > request["max_chars"]:
        return {"error": f"it wrote {len(text)} characters, and {request['max_chars']} are allowed"}
    return {"text": text}


def tojson_of(off: dict[int, str], floats: set[float]) -> Callable[..., str]:
    """The filter `tojson` as in Transformers: not escaped for HTML. Disguised characters are escaped and
    sorted as what they stand for (`off`): a `"` becomes a backslash and its disguise.
    `floats`: `whole_floats` of the context.
    """

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        if type(value) is int and value in floats:
            value = float(value)
        if not off:
            return json.dumps(
                value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
            )
        value = sorted_keys(value, off) if sort_keys else value
        text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
        escapes = {}
        for code in {ord(char) for char in text if not char.isascii()}:
            char = off.get(code, chr(code))
            escape = json.dumps(char, ensure_ascii=ensure_ascii)[1:-1]
            escapes[code] = escape[:-1] + chr(code) if escape.endswith(char) else escape
        return text.translate(escapes)

    return tojson


def whole_floats(context: Any) -> set[float]:
    """The numbers that stand in `context` as 1.0 and nowhere as 1. MiniJinja makes an int of a whole float
    that a filter gets, and Python writes it as 1.0.
    """
    floats, ints, todo = set(), set(), [context]
    while todo:
        value = todo.pop()
        if isinstance(value, dict | list):
            todo.extend(value.values() if isinstance(value, dict) else value)
        elif type(value) is float and value.is_integer():
            floats.add(value)
        elif type(value) is int:
            ints.add(value)
    return floats - ints


def in_disguise(value: Any, off: dict[int, str]) -> Any:
    """`value` with lists and objects that print as Python prints them, disguised strings in them quoted and
    escaped as what they stand for.
    """

    class List(list[Any]):
        def __repr__(self) -> str:
            return "[" + ", ".join(map(text_of, self)) + "]"

        __str__ = __repr__

    class Object(dict[str, Any]):
        def __repr__(self) -> str:
            return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in self.items()) + "}"

        __str__ = __repr__

    def text_of(value: object) -> str:
        if not isinstance(value, str):
            return repr(value)
        quote = repr(value.translate(off))[0]
        text = ""
        for disguise in value:
            char = off.get(ord(disguise), disguise)
            escape = "\\" + char if char == quote else char if char in "'\"" else repr(char)[1:-1]
            text += escape[:-1] + disguise if escape.endswith(char) else escape
        return quote + text + quote

    def wrapped(value: Any) -> Any:
        if isinstance(value, dict):
            return Object({key: wrapped(item) for key, item in value.items()})
        return List(map(wrapped, value)) if isinstance(value, list) else value

    return wrapped(value)


def sorted_keys(value: Any, off: dict[int, str]) -> Any:
    """`value` with its keys in the order of the texts that they stand for."""
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: str(pair[0]).translate(off))
        return {key: sorted_keys(item, off) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [sorted_keys(item, off) for item in value]
    return value


def is_iterable(value: object) -> bool:
    """jinja2's test; MiniJinja's own says yes to none, whose length templates then ask for."""
    return hasattr(value, "__iter__")


def is_sequence(value: object) -> bool:
    """jinja2's test: whatever has a length and can be indexed, so strings and mappings too."""
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def without_training_tags(source: str) -> str:
    """`{% generation %}` blocks mark text for training; here they are plain blocks."""
    source = re.sub(r"\{%([-+]?)\s*generation\s*([-+]?)%\}", r"{%\1 if true \2%}", source)
    return re.sub(r"\{%([-+]?)\s*endgeneration\s*([-+]?)%\}", r"{%\1 endif \2%}", source)


if __name__ == "__main__":
    main()
