"""`argparse` with our manners: no abbreviations, and an unknown option is refused with the nearest name.

Help texts are written in English and shown in the language chosen: `format_help` translates them all, so that
a verb only says `help="…"`. argparse and not typer, because a command line is waited for: importing typer
takes 70 ms here, argparse 10.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from tokenglass.cli.language import LANGUAGES, language, t
from tokenglass.cli.output import write
from tokenglass.errors import UsageError


class Parser(argparse.ArgumentParser):
    """The options of one verb: `Parser("run", "Answer a prompt …")`."""

    def __init__(self, verb: str, description: str, **more: Any) -> None:
        super().__init__(
            prog=f"tokenglass {verb}",
            description=description,
            allow_abbrev=False,
            formatter_class=_Formatter,
            **more,
        )
        # only for the help text: main.py has taken it out of the line by the time this parser reads it
        self.add_argument(
            "--lang",
            choices=LANGUAGES,
            dest=argparse.SUPPRESS,
            default=argparse.SUPPRESS,
            help="language of help and messages (default: TOKENGLASS_LANG, or en)",
        )

    def values(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Every option by name. UsageError: one that is unknown, misspelt or without a fitting value."""
        namespace, unknown = self.parse_known_args(arguments)
        if unknown:
            raise self._refusal(next((word for word in unknown if word.startswith("-")), unknown[0]))
        return vars(namespace)

    def format_help(self) -> str:
        """The help text in the language chosen."""
        for action in self._actions:
            action.help = action.help and t(action.help)
        for group in self._action_groups:
            group.title = group.title and t(group.title)
            group.description = group.description and t(group.description)
        self.description = self.description and t(self.description)
        self.epilog = self.epilog and t(self.epilog)
        return super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse is silent about a full disk; `write` says it."""
        write(message)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message.removeprefix("argument "), remedy=f"See {self.prog} --help")

    def _refusal(self, word: str) -> UsageError:
        if not word.startswith("-"):
            return UsageError(
                f"{word!r} was not expected", remedy="A text with spaces needs quotes around it"
            )
        from difflib import get_close_matches

        name = word.split("=")[0]
        near = get_close_matches(name, self._option_string_actions, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        return UsageError(f"there is no option {name}", remedy=f"{meant}See {self.prog} --help")


class _Formatter(argparse.HelpFormatter):
    """argparse counts characters and breaks at spaces; Chinese takes two columns each and has no spaces."""

    def __init__(self, prog: str, **more: Any) -> None:
        if language() != "en":  # "usage: " is wider than it is long
            import shutil

            more = {"width": shutil.get_terminal_size().columns - 2 - len(t("usage: ")), **more}
        super().__init__(prog, max_help_position=30, **more)

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, t("usage: ") if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if language() == "en" else wrap_columns(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if language() == "en":
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in wrap_columns(text, width - len(indent)))


def wrap_columns(text: str, columns: int) -> list[str]:
    """Lines of at most `columns` columns. Breaks at spaces and beside wide characters, never inside a word.

    No line begins with a closing mark of Chinese, and none ends with an opening bracket.
    """
    import re

    from tokenglass.cli.columns import width

    units = re.findall(r"\s+|（?(?:[^\s\u2e80-\uffff]+|[\u2e80-\uffff])[，。；：、！？）…]*", text)
    lines, room = [""], columns
    for unit in units:
        needed = width(unit)
        if needed > room and lines[-1]:
            lines, room = [*lines, ""], columns
        if lines[-1] or not unit.isspace():
            lines[-1] += unit
            room -= needed
    return [line.rstrip() for line in lines]
