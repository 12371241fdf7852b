"""`tokenglass models show`: what a model is, from the catalogue, the store and its own file."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenglass.cli.columns import escaped, left, size, width
from tokenglass.cli.language import listed, t
from tokenglass.cli.models_list import sources_of
from tokenglass.cli.output import write
from tokenglass.cli.parser import Parser
from tokenglass.errors import ModelNotFoundError
from tokenglass.formats import is_folder_model
from tokenglass.hub import bytes_of, find, model_name, read_receipt, store_folder, stored_path


def show_model(arguments: list[str], parser: Parser) -> int:
    """Prints what is known about one model."""
    parser.add_argument("name", metavar="NAME", help=t("a name of the list, or a path of a file or folder"))
    parser.add_argument("--json", action="store_true", help=t("one JSON object, for programs"))
    options = parser.values(arguments)
    facts = known_facts(options["name"])
    if options["json"]:
        write(json.dumps(facts, ensure_ascii=False) + "\n")
        return 0
    labels = {key: t(key.replace("_", " ")) for key in facts}
    label_width = max(map(width, labels.values()))
    for key, value in facts.items():
        if value not in (None, "", {}, []):
            write(f"{left(labels[key], label_width)}  {_fact(key, value)}\n")
    return 0


def known_facts(name: str) -> dict[str, Any]:
    """Everything about a model by its name or path, from the catalogue, the store and its file."""
    is_path = os.path.isfile(name) or is_folder_model(Path(name))
    entry, path = find(name), Path(name) if is_path else stored_path(name)
    if entry is None and path is None:
        raise unknown_model(name)
    facts: dict[str, Any] = {"name": entry.name if entry else model_name(path) if path else name}
    if entry and not is_path:
        facts |= {"aliases": list(entry.aliases), "sources": sources_of(entry), "licence": entry.licence}
        facts |= {"architecture": entry.architecture, "note": entry.note, "obstacle": entry.obstacle}
        facts |= {"parameters": entry.parameters, "num_bytes": entry.num_bytes}
        receipt = read_receipt(store_folder(), entry.stored_as)
        facts["fetched_from"] = receipt.address if receipt else None
    facts["path"] = str(path) if path else None
    if path:
        facts["num_bytes"] = bytes_of(path)
    if path and (path.is_file() or is_folder_model(path)):
        from tokenglass.hub.facts import describe

        inside = asdict(describe(path))
        facts |= {
            "architecture": inside["architecture"],
            "name_in_file": inside["name"],
            "licence": facts.get("licence") or inside["licence"],
            "parameters": inside["num_parameters"],
            "types": inside["types"],
            "context_length": inside["context_length"],
            "layers": inside["num_layers"],
            "embedding_length": inside["embedding_length"],
            "tokens": inside["num_tokens"],
            "tokenizer": inside["tokenizer"],
            "chat_template": inside["has_template"],
        }
    return facts


def unknown_model(name: str) -> ModelNotFoundError:
    see = t("See {command}", command="tokenglass models list")
    return ModelNotFoundError(t("no model is called {name!r}", name=name), remedy=see)


def _fact(key: str, value: object) -> str:
    """One value of `show`, as a person reads it."""
    match key, value:
        case "num_bytes", int(n):
            return f"{size(n)} ({n:,})"
        case _, bool(yes):
            return t("yes") if yes else t("no")
        case "types", dict(types):
            total = sum(types.values()) or 1
            return listed(f"{escaped(str(name))} {n / total:.1%}" for name, n in types.items())
        case "sources", dict(places):
            return listed(f"{name} {place}" for name, place in places.items() if name != "mirror")
        case _, int(n):
            return f"{n:,}"
        case _, list(words):
            return listed(words)
        case "note" | "obstacle" | "licence", str(words):
            return escaped(t(words))
    return escaped(str(value))
