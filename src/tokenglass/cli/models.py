"""`tokenglass models`: what there is, and what is stored here; fetched, shown, removed, shared.

Only the talking is here; what is done is in `hub/`. `share` has a file of its own, `models_share.py`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenglass.cli.columns import left, right, width
from tokenglass.cli.language import listed, t
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.progress import download_progress
from tokenglass.errors import ModelFileError, ModelNotFoundError, UsageError
from tokenglass.formats import is_folder_model
from tokenglass.hub import (
    CATALOGUE,
    Entry,
    find,
    is_stored,
    model_name,
    pull,
    read_receipt,
    remove,
    store_folder,
    stored_models,
    stored_path,
)

ACTIONS = {
    "list": "the models known by name, and what is stored here",
    "pull": "fetch a model into the store and check every byte of it",
    "show": "what a model is: from the catalogue and from its file",
    "rm": "remove a model from the store",
    "path": "print where a stored model is, for scripts",
    "share": "serve the store to the room, in the protocol of the hub",
}


def main(arguments: list[str]) -> int:
    """Calls the action that the first argument names; `list` without one."""
    actions: dict[str, Callable[[list[str]], int]] = {
        "list": list_models,
        "pull": pull_models,
        "show": show_model,
        "rm": remove_models,
        "path": print_path,
        "share": _share,
    }
    match arguments:
        case []:
            return list_models([])
        case [action, *rest] if action in actions:
            return actions[action](rest)
        case ["--help" | "-h" | "help", *_]:
            write(usage())
            return 0
        case [other, *_]:
            from difflib import get_close_matches

            near = get_close_matches(other, actions, n=1)
            meant = t("Did you mean {name}?", name=near[0]) + " " if near else ""
            see = t("See {command}", command="tokenglass models --help")
            raise UsageError(t("there is no action {name!r}", name=other), remedy=meant + see)
    raise AssertionError(arguments)


def usage() -> str:
    """The overview that `tokenglass models --help` prints."""
    lines = [f"  {action:7}{t(what)}" for action, what in ACTIONS.items()]
    see = t("{command} says what an action takes.", command="tokenglass models ACTION --help")
    head = t("usage: tokenglass models ACTION [options]")
    return "\n".join([head, "", *lines, "", see, ""])


# --- list ---


def list_models(arguments: list[str]) -> int:
    """Prints the catalogue and the files of the user's own."""
    parser = _parser("list")
    parser.add_argument("--json", action="store_true", help=t("one JSON object, for programs"))
    options = parser.values(arguments)
    rows = catalogue_rows() + own_rows()
    if options["json"]:
        write(json.dumps({"store": str(store_folder()), "models": rows}, ensure_ascii=False) + "\n")
        return 0
    heads = [t("name"), t("size"), t("licence"), t("runs here")]
    table = [[row["name"], _size(row["num_bytes"]), t(row["licence"] or ""), _runs(row)] for row in rows]
    marks = ["  ", *("* " if row["stored"] else "  " for row in rows)]
    for mark, (name, num_bytes, licence, runs) in zip(marks, [heads, *table], strict=True):
        cells = [mark + left(_shown(name), 28), right(num_bytes, 7), left(_shown(licence), 20), runs]
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
                "num_bytes": _bytes_of(store / entry.stored_as) if here else entry.num_bytes,
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

    row: dict[str, Any] = {"name": model_name(path), "aliases": [], "num_bytes": _bytes_of(path)}
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


# --- pull ---


def pull_models(arguments: list[str]) -> int:
    """Fetches models, one after the other, and prints where each is."""
    parser = _parser("pull")
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=t("a name of the list; on the hub OWNER/NAME or OWNER/NAME/FILE.gguf"),
    )
    parser.add_argument(
        "--source",
        metavar="SOURCE",
        help=t("hub, mirror, modelscope or wheel; without it the first that answers"),
    )
    options = parser.values(arguments)
    for name in options["names"]:
        with download_progress() as progress:
            path = pull(name, source=options["source"], progress=progress)
        entry = find(name)
        if entry and entry.obstacle:
            say(t("{name} is stored, but cannot run: {reason}", name=entry.name, reason=t(entry.obstacle)))
        write(f"{path}\n")
    return 0


# --- show and path ---


def show_model(arguments: list[str]) -> int:
    """Prints what is known about one model."""
    parser = _parser("show")
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
        raise _unknown(name)
    facts: dict[str, Any] = {"name": entry.name if entry else model_name(path) if path else name}
    if entry and not is_path:
        facts |= {"aliases": list(entry.aliases), "sources": sources_of(entry), "licence": entry.licence}
        facts |= {"architecture": entry.architecture, "note": entry.note, "obstacle": entry.obstacle}
        facts |= {"parameters": entry.parameters, "num_bytes": entry.num_bytes}
        receipt = read_receipt(store_folder(), entry.stored_as)
        facts["fetched_from"] = receipt.address if receipt else None
    facts["path"] = str(path) if path else None
    if path:
        facts["num_bytes"] = _bytes_of(path)
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


def print_path(arguments: list[str]) -> int:
    """Prints the path of a stored model and nothing else."""
    parser = _parser("path")
    parser.add_argument("name", metavar="NAME", help=t("a name of the list"))
    name = parser.values(arguments)["name"]
    path = stored_path(name)
    if path is None:
        if find(name) is None:
            raise _unknown(name)
        raise ModelNotFoundError(
            t("{name} is not stored here", name=name),
            remedy=t("Fetch it: {command}", command=f"tokenglass models pull {name}"),
        )
    write(f"{path}\n")
    return 0


# --- rm ---


def remove_models(arguments: list[str]) -> int:
    """Removes models from the store, after asking."""
    parser = _parser("rm")
    parser.add_argument("names", nargs="+", metavar="NAME", help=t("a name of the list"))
    parser.add_argument("-y", "--yes", action="store_true", help=t("do not ask"))
    options = parser.values(arguments)
    for name in options["names"]:  # first all names, so that a slip in the last removes nothing
        if find(name) is None and stored_path(name) is None:
            raise _unknown(name)
    for name in options["names"]:
        path = _place(name)
        if os.path.lexists(path) and not options["yes"] and not _confirmed(path):
            say(t("{name} stays", name=name))
        elif remove(name):
            say(t("{name} is removed", name=name))
        else:
            say(t("{name} is not stored here", name=name))
    return 0


def _place(name: str) -> Path:
    """Where the store keeps a known model, also when what is there is cut or a link to nowhere."""
    entry = find(name)
    return store_folder() / entry.stored_as if entry else stored_path(name) or store_folder() / name


def _confirmed(path: Path) -> bool:
    """Asks in a terminal. UsageError: there is none to ask in."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            t("nobody can be asked here whether to remove {path}", path=path),
            remedy=t("Add --yes to remove it"),
        )
    question = t("remove {path} ({size})? [y/N] ", path=path, size=_size(_bytes_of(path)))
    print(_shown(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")


def _share(arguments: list[str]) -> int:
    from tokenglass.cli.models_share import share_models

    return share_models(arguments, _parser("share"))


# --- small print ---


def _parser(action: str, **more: Any) -> Parser:
    what = t(ACTIONS[action])
    return Parser(f"models {action}", what[0].upper() + what[1:], **more)


def _unknown(name: str) -> ModelNotFoundError:
    see = t("See {command}", command="tokenglass models list")
    return ModelNotFoundError(t("no model is called {name!r}", name=name), remedy=see)


def _bytes_of(path: Path) -> int:
    """Length of a file, or of all files of a folder together."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _size(num_bytes: int | None) -> str:
    if num_bytes is None:
        return "-"
    return f"{num_bytes / 1e9:.2f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.1f} MB"


def _fact(key: str, value: object) -> str:
    """One value of `show`, as a person reads it."""
    match key, value:
        case "num_bytes", int(n):
            return f"{_size(n)} ({n:,})"
        case _, bool(yes):
            return t("yes") if yes else t("no")
        case "types", dict(types):
            total = sum(types.values()) or 1
            return listed(f"{_shown(str(name))} {n / total:.1%}" for name, n in types.items())
        case "sources", dict(places):
            return listed(f"{name} {place}" for name, place in places.items() if name != "mirror")
        case _, int(n):
            return f"{n:,}"
        case _, list(words):
            return listed(words)
        case "note" | "obstacle" | "licence", str(words):
            return _shown(t(words))
    return _shown(str(value))


def _shown(text: str) -> str:
    """Words from a file or a file's name, on one line: what would move the cursor or turn text is escaped."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )
