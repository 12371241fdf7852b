"""Errors and notes of the parts below the command line, in the language chosen.

The engine speaks English only: what it raises is an API, it is searched for on the web, and no module below
`cli` knows of languages. So a finished English sentence is recognised here by its template, such as
`must be a number from {low} to {high}, not {value}`, and said again with the same values in Chinese.
What no template fits stays English.
"""

from __future__ import annotations

import re
from functools import cache
from string import Formatter

from tokenglass.cli.language import catalogue, language, listed
from tokenglass.errors import ModelFileError, ParameterError, TokenglassError

LISTS = {"choices", "names", "parts", "roles"}  # fields that hold several words: in English with commas


def error_line(error: TokenglassError) -> str:
    """What `error` says, in one line, in the language chosen."""
    if language() == "en":
        return str(error)
    where = ""
    if isinstance(error, ModelFileError):
        where = f"{error.path.name}: {error.field}: "
    elif isinstance(error, ParameterError):
        where = f"{error.name} "
    what = where + translated(error.what.removeprefix(where))
    return f"{what}。{translated(error.remedy)}" if error.remedy else what


def translated(sentence: str) -> str:
    """A finished English sentence in the language chosen; unchanged where it is not known."""
    if language() == "en":
        return sentence
    if sentence in catalogue():
        return catalogue()[sentence]
    for pattern, chinese in _templates():
        if found := pattern.fullmatch(sentence):
            values = found.groupdict()
            lists = {name: listed(values[name].split(", ")) for name in LISTS & values.keys()}
            return chinese.format(**values | lists)
    parts = sentence.split("; ")  # one for each place that was asked
    return "；".join(map(translated, parts)) if len(parts) > 1 else sentence


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Patterns of the sentences with fields; those with the most fixed text first, as they are surest."""
    from tokenglass.cli.messages_errors import ZH  # never for English

    found = []
    for english, chinese in ZH.items():
        parts = [(literal, field) for literal, field, _, _ in Formatter().parse(english)]
        if any(field for _, field in parts):
            pattern = "".join(
                re.escape(text) + (f"(?P<{field}>.*?)" if field else "") for text, field in parts
            )
            found.append((sum(len(text) for text, _ in parts), re.compile(pattern, re.DOTALL), chinese))
    return [(pattern, chinese) for _, pattern, chinese in sorted(found, key=lambda entry: -entry[0])]
