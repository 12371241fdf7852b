"""`argparse` with our manners: no abbreviations, and an unknown option is refused with the nearest name.

argparse and not typer, because a command line is waited for: importing typer takes 70 ms here, argparse 10.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from tokenglass.errors import UsageError


class Parser(argparse.ArgumentParser):
    """The options of one verb: `Parser("run", "Answer a prompt …")`."""

    def __init__(self, verb: str, description: str, **more: Any) -> None:
        super().__init__(
            prog=f"tokenglass {verb}",
            description=description,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30),
            **more,
        )

    def values(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Every option by name. UsageError: one that is unknown, misspelt or without a fitting value."""
        namespace, unknown = self.parse_known_args(arguments)
        if unknown:
            raise self._refusal(next((word for word in unknown if word.startswith("-")), unknown[0]))
        return vars(namespace)

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
