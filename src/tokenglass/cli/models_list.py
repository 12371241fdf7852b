"""`tokenglass models list`: the models known by name, and what is stored here beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenglass.cli.columns import escaped, left, right, size
from tokenglass.cli.language import t
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.errors import ModelFileError
from tokenglass.hub import CATALOGUE, Entry, bytes_of, is_stored, model_name, store_folder, stored_models


def list_models(arguments: list[str], parser: Parser) -> int:
    """Prints the catalogue and the files of the user's own."""
    parser.add_argument("--json", action="store_true", help=t("one JSON object, for programs"))
    options = parser.values(arguments)
    rows = catalogue_rows() + own_rows()
    if options["json"]:
        write(json.dumps({"store": str(store_folder()), "models": rows}, ensure_ascii=False) + "\n")
        return 0
    heads = [t("name"), t("size"), t("licence"), t("runs here")]
    table = [[row["name"], size(row["num_bytes"]), t(row["licence"] or ""), _runs(row)] for row in rows]
    marks = ["  ", *("* " if row["stored"] else "  " for row in rows)]
    for mark, (name, num_bytes, licence, runs) in zip(marks, [heads, *table], strict=True):
        cells = [mark + left(escaped(name), 28), right(num_bytes, 7), left(escaped(licence), 20), runs]
        write("  ".join(cells).rstrip() + "\n")
    say(t("* stored in {path}", path=store_folder()))
    return 0


def catalogue_rows() -> list[dict[str, Any]]:
    """One row for each model of the catalogue."""
    store = store_folder()
    rows = []
    for entry in CATALOGUE:
        here = is_stored(entry, store)
        rows.append(
            {
                "name": entry.name,
                "aliases": list(entry.aliases),
                "architecture": entry.architecture,
                "parameters": entry.parameters,
                "num_bytes": bytes_of(store / entry.stored_as) if here else entry.num_bytes,
                "licence": entry.licence,
                "stored": here,
                "path": str(store / entry.stored_as) if here else None,
                "runnable": entry.obstacle is None,
                "obstacle": entry.obstacle,
                "sources": sources_of(entry),
            }
        )
    return rows


def own_rows() -> list[dict[str, Any]]:
    """One row for each model in the store that the catalogue does not know."""
    reserved = {entry.stored_as for entry in CATALOGUE}
    return [_own_row(path) for path in stored_models(store_folder()) if path.name not in reserved]


def _own_row(path: Path) -> dict[str, Any]:
    from tokenglass.hub.facts import describe
    from tokenglass.models.registry import ARCHITECTURES, ENCODERS

    row: dict[str, Any] = {"name": model_name(path), "aliases": [], "num_bytes": bytes_of(path)}
    row |= {"architecture": None, "licence": None, "stored": True, "path": str(path), "sources": {}}
    try:
        facts = describe(path)
    except ModelFileError as error:
        return {**row, "runnable": False, "obstacle": str(error)}
    row |= {"architecture": facts.architecture, "licence": facts.licence}
    if facts.architecture in ARCHITECTURES:
        return {**row, "runnable": True, "obstacle": None}
    kind = "is an encoder" if facts.architecture in ENCODERS else "is not supported yet"
    return {**row, "runnable": False, "obstacle": f"{facts.architecture} {kind}"}


def sources_of(entry: Entry) -> dict[str, str]:
    """Where the model can come from: the name of the source, and the repository or package there."""
    wheel = entry.wheel.requirement if entry.wheel else None
    places = {"hub": entry.hub, "mirror": entry.hub, "modelscope": entry.modelscope, "wheel": wheel}
    return {name: place for name, place in places.items() if place}


def _runs(row: dict[str, Any]) -> str:
    if row["runnable"]:
        return t("yes")
    return t("encoder") if "encoder" in row["obstacle"] else t("not runnable yet")
