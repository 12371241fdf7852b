"""JSON out of a file nobody should trust: one object, no key twice, bounded. What the keys mean is not known.

Python's own parser does the work: it is linear, and too deep a nesting or too long a number end in an error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenglass.errors import ModelFileError
from tokenglass.formats.cursor import shown

MAX_JSON_BYTES = 1 << 27  # the largest tokenizer.json has 35 MB


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file at `path`. ModelFileError: no such file, too large, or not one JSON object."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise ModelFileError(path, "file", error.strerror or str(error)) from None
    if len(raw) > MAX_JSON_BYTES:
        raise ModelFileError(path, "file", f"has more than {MAX_JSON_BYTES >> 20} MB")
    return parse_object(raw, path, "file")


def parse_object(raw: bytes, path: Path, field: str) -> dict[str, Any]:
    """The object `raw` holds; `path` and `field` are for messages. ModelFileError: it is not one."""

    def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ModelFileError(path, field, f"the key {shown(key)} appears twice")
            found[key] = value
        return found

    try:
        value = json.loads(raw.decode(), object_pairs_hook=without_doubles)
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except UnicodeError:
        raise ModelFileError(path, field, "the string is not UTF-8") from None
    except RecursionError:
        raise ModelFileError(path, field, "is nested too deeply") from None
    except ValueError as error:  # also a number of more than 4300 digits
        raise ModelFileError(path, field, f"is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFileError(path, field, "must be a JSON object")
    return value
