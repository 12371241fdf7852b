"""A Python function as a tool: its JSON schema, from type hints and a docstring in Google's style.

def add(a: int, b: int = 0) -> int:
    "Adds two numbers.

    Args:
        a: the first one
        b: the second one (choices: [0, 1])"

The schema is the one that Transformers' `get_json_schema` makes (`utils/chat_template_utils.py`, Apache-2.0).
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tokenglass.errors import ParameterError

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null", Any: None}
_SECTION = re.compile(r"^\s*(Args|Returns|Raises):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s", re.MULTILINE)
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.DOTALL | re.IGNORECASE)


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function. ParameterError: an argument has no type hint or is not described, or a type
    has no counterpart in JSON.
    """
    name = getattr(function, "__name__", type(function).__name__)
    where = f"tools.{name}"
    summary, *rest = _SECTION.split(inspect.getdoc(function) or "")
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    if not summary.strip():
        raise ParameterError(where, "has no docstring that says what it does")
    _, *entries = _ENTRY.split(sections.get("Args", ""))
    described = {key: " ".join(text.split()) for key, text in zip(entries[::2], entries[1::2], strict=True)}
    hints = get_type_hints(function)
    properties, required = {}, []
    for key, parameter in inspect.signature(function).parameters.items():
        if key not in hints or key not in described:
            missing = "type hint" if key not in hints else "description under Args:"
            raise ParameterError(f"{where}.{key}", f"has no {missing}")
        schema, description = _type_schema(hints[key], f"{where}.{key}"), described[key]
        if choices := _CHOICES.search(description):
            schema["enum"] = json.loads(choices[1])
            description = description[: choices.start()].strip()
        properties[key] = {**schema, "description": description}
        if parameter.default is inspect.Parameter.empty:
            required.append(key)
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    described_as = {"name": name, "description": summary.strip(), "parameters": parameters}
    if "return" in hints:
        returned = sections.get("Returns", "").strip()
        schema = _type_schema(hints["return"], f"{where}.return")
        described_as["return"] = schema | ({"description": returned} if returned else {})
    return {"type": "function", "function": described_as}


def _type_schema(hint: Any, where: str) -> dict[str, Any]:
    arguments = get_args(hint)
    origin = get_origin(hint) or hint
    if origin in (Union, types.UnionType):
        kinds = [_type_schema(kind, where) for kind in arguments if kind is not type(None)]
        if len(kinds) == 1:
            found = kinds[0]
        elif all(isinstance(kind.get("type"), str) and len(kind) == 1 for kind in kinds):
            found = {"type": sorted(kind["type"] for kind in kinds)}
        else:
            found = {"anyOf": kinds}
        return found | ({"nullable": True} if type(None) in arguments else {})
    if origin is Literal:
        names = sorted({str(_TYPES.get(type(value))) for value in arguments})
        return {"type": names[0] if len(names) == 1 else names, "enum": list(arguments)}
    if origin is list:
        return {"type": "array"} | ({"items": _type_schema(arguments[0], where)} if arguments else {})
    if origin is dict:
        values = {"additionalProperties": _type_schema(arguments[1], where)} if arguments else {}
        return {"type": "object"} | values
    if origin not in _TYPES:
        raise ParameterError(where, f"has a type with no counterpart in JSON: {hint}")
    return {"type": _TYPES[origin]} if _TYPES[origin] else {}
