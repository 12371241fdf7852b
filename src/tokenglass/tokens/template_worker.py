"""Renders chat templates for `template_process.py`, in a process of its own. Run as a script, not imported.

A template is a program out of a model file. MiniJinja cannot reach Python or the system, and its fuel ends
endless loops, but a hostile template can still crash it (a namespace that contains itself, deep nesting) or
fill the memory: here that ends this process only. Filters and globals are those of Transformers
(`utils/chat_template_utils.py`, Apache-2.0).

In, one JSON line:  {"source", "contexts": [{name: value}, ...], "fuel", "max_chars", "now"}
Out, one JSON line: {"texts": [...]} or {"refused": the template's words} or {"error": what is wrong with it}
"""

from __future__ import annotations

import json
import re
import sys
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
    import minijinja

    def raise_exception(message: object = "") -> None:
        raise Refused(str(message))

    def strftime_now(form: str) -> str:
        return datetime.fromtimestamp(request["now"]).strftime(form)

    texts = []
    try:
        environment = minijinja.Environment(
            templates={"chat": without_training_tags(request["source"])},
            filters={"tojson": tojson},
            globals={"raise_exception": raise_exception, "strftime_now": strftime_now},
            auto_escape_callback=lambda name: False,
            fuel=request["fuel"],
            debug=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for context in request["contexts"]:
            text = environment.render_template("chat", **context)
            if len(text) > request["max_chars"]:
                return {"error": f"it wrote {len(text)} characters, and {request['max_chars']} are allowed"}
            texts.append(text)
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
    return {"texts": texts}


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as Transformers writes it: not escaped for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def without_training_tags(source: str) -> str:
    """`{% generation %}` blocks mark text for training; here they are plain blocks."""
    source = re.sub(r"\{%([-+]?)\s*generation\s*([-+]?)%\}", r"{%\1 if true \2%}", source)
    return re.sub(r"\{%([-+]?)\s*endgeneration\s*([-+]?)%\}", r"{%\1 endif \2%}", source)


if __name__ == "__main__":
    main()
