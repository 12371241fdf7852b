"""The language of the command line: `t("{n} tokens", n=3)` says it in the one chosen.

English texts are the keys, so the code reads as it prints. The Chinese stands in `ZH`, a dict in each
`messages_<verb>.py`; these files are imported with the first Chinese text and never for English. A text
without Chinese stays English; tests/cli/test_language.py finds it before a user does.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from tokenglass import cli
from tokenglass.errors import UsageError

LANGUAGES = ("en", "zh")
VARIABLE = "TOKENGLASS_LANG"
_chosen = "en"


def t(text: str, /, **fields: object) -> str:
    """`text` in the chosen language, with its {fields} filled in: `t("{n} tokens", n=3)`."""
    translated = catalogue().get(text, text) if _chosen == "zh" else text
    return translated.format(**fields) if fields else translated


def listed(words: Iterable[object]) -> str:
    """`a, b, c`; in Chinese `a、b、c`."""
    return ("、" if _chosen == "zh" else ", ").join(map(str, words))


def language() -> str:
    """The language chosen: "en" or "zh"."""
    return _chosen


def set_language(code: str) -> None:
    """Chooses the language of all texts from now on. UsageError: not one of LANGUAGES."""
    global _chosen
    if code not in LANGUAGES:
        raise UsageError(f"there is no language {code!r}", remedy="There are en and zh (中文)")
    _chosen = code


def choose_language(arguments: list[str], environment: Mapping[str, str] = os.environ) -> list[str]:
    """Takes `--lang CODE` out of a command line, before or after the verb, and sets the language.

    Without it TOKENGLASS_LANG decides; its value `auto` follows the locale. Otherwise it is English: the
    locale alone changes nothing, so that scripts read the same lines everywhere.
    """
    code = language_of(environment)
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == "--lang" or word.startswith("--lang="):
            code = word.partition("=")[2] if "=" in word else next(words, "")
        else:
            rest.append(word)
    set_language(code)
    return rest


def language_of(environment: Mapping[str, str]) -> str:
    """What the environment asks for; the variables of the locale are read in POSIX's order."""
    code = environment.get(VARIABLE) or "en"
    if code != "auto":
        return code
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if locale.startswith("zh") else "en"


@cache
def catalogue() -> dict[str, str]:
    """English to Chinese, from all files `messages_*.py` beside this one."""
    texts: dict[str, str] = {}
    for info in pkgutil.iter_modules(cli.__path__):
        if info.name.startswith("messages_"):
            texts |= import_module(f"{cli.__name__}.{info.name}").ZH
    return texts
