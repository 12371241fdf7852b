"""Which characters of a rendered chat came from the user, so that none of them can make a control token.

A template is a black box, so we render it twice: with the messages as they are, and with every character of
the user's strings replaced by a disguise, a private-use character that occurs nowhere in the input:

    plain      <|im_start|> user\\n  hi <|im_end|>  <|im_end|> \\n
    disguised  <|im_start|> user\\n  ██ ██████████  <|im_end|> \\n     (one disguise per character)

If taking the disguises off gives the first text again, each character's origin is known, and a control token
is one only where the disguised text spells it out. If not, the template has looked at the text itself
(`content.upper()`, `"</think>" in content`). Then a lighter disguise is tried (`chat.py`): first without the
words the template looks for, then only on punctuation, which every control token needs. If none fits, the
chat is refused. So a control token can hold characters of the user's only if the template writes punctuation
around them, or makes punctuation out of their letters; none we know of does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenglass.errors import ParameterError
from tokenglass.tokens.continuing import REASONING_KEYS

_PRIVATE_USE = (range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))  # planes 15 and 16
NEVER = re.compile(r"(?!)")


class ControlTexts:
    """The control tokens of a vocabulary as texts to be found in another text; some have thousands."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = {text: token_id for text, token_id in ids.items() if text.strip()}

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return _any_of(self.ids)

    @cached_property
    def _joined(self) -> str:
        return "\0".join(self.ids)

    @cached_property
    def _bare(self) -> str:
        return "\0".join(text for text in self.ids if text.replace(" ", "").isalnum())

    @cached_property
    def _beginnings(self) -> set[str]:
        return {text[:n] for text in self.ids for n in range(1, len(text))}

    @cached_property
    def _ends(self) -> set[str]:
        return {text[-n:] for text in self.ids for n in range(1, len(text))}

    def split(self, text: str) -> Iterator[tuple[int, int, int | None]]:
        """(start, end, id) of each control token, the longest where several begin, and the text between."""
        last = 0
        for found in self._any.finditer(text):
            if found.start() > last:
                yield last, found.start(), None
            yield found.start(), found.end(), self.ids[found.group()]
            last = found.end()
        if last < len(text):
            yield last, len(text), None

    def overlap(self, text: str) -> bool:
        """Could `text` be part of a control token together with what stands before or behind it?"""
        return (
            text in self._joined
            or self._any.search(text) is not None
            or any(text[-n:] in self._beginnings or text[:n] in self._ends for n in range(1, len(text)))
        )

    def hinges(self, chars: set[str]) -> set[str]:
        """Those of `chars` without which they cannot spell a control token: whatever is no letter or digit,
        even what no control token has, for a template may make a "<" of a "(". Where a control token has
        only letters and digits, they count too, in either case.
        """
        bare = self._bare.lower() + self._bare.upper()
        return {char for char in chars if not char.isalnum() or char in bare}

    def spelled_by(self, word: str) -> bool:
        """Could a word of letters and digits be a whole control token, or part of one that has only those?"""
        return word in self._bare or self._any.search(word) is not None


@dataclass(frozen=True)
class TemplateWords:
    """What a template may look for in a user's strings; left as it is where it would not work otherwise."""

    keys: frozenset[str]  # as keys of objects: identifiers and literals, "content" among them
    values: frozenset[str]  # as whole strings: identifiers
    literals: re.Pattern[str]  # anywhere: literals that cannot be part of a control token, longest first

    @classmethod
    def of(cls, source: str, control: ControlTexts) -> TemplateWords:
        """The words of a template; `source` is its text."""
        literals = {
            text for literal in _literals(source) for text in (literal, literal.strip()) if text.strip()
        }
        names = frozenset(re.findall(r"\w+", source))
        return cls(
            names | literals | {"role", "content", "text", *REASONING_KEYS},
            frozenset(name for name in names if not control.spelled_by(name)),
            _any_of(text for text in literals if len(text) > 1 and not control.overlap(text)),
        )

    def only_keys(self) -> TemplateWords:
        """Without the words that may stand in values."""
        return TemplateWords(self.keys, frozenset(), NEVER)


class Disguise:
    """One disguise for every character of `chars`; none of them occurs in `taken`.

    ParameterError: too few private-use characters are left, which happens only to whoever uses them all.
    """

    def __init__(self, chars: set[str], taken: set[str], words: TemplateWords) -> None:
        free = (chr(code) for plane in _PRIVATE_USE for code in plane if chr(code) not in taken)
        pairs = list(zip(sorted(chars), free, strict=False))
        if len(pairs) < len(chars):
            raise ParameterError("messages", "have too many different characters to follow each of them")
        self._on = str.maketrans(dict(pairs))
        self.chars = {disguise: char for char, disguise in pairs}  # disguise -> the character it stands for
        self._off = str.maketrans(self.chars)
        self._words = words

    def put_on(self, value: Any) -> Any:
        """`value` (JSON) with every string in it disguised, but for the template's own words."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.put_on(item) for item in value]
        if isinstance(value, dict):
            return {
                key if key in self._words.keys else self._text(key): self.put_on(item)
                for key, item in value.items()
            }
        return value

    def take_off(self, text: str) -> str:
        return text.translate(self._off)

    def hides(self, char: str) -> bool:
        return char in self.chars

    def _text(self, text: str) -> str:
        if text in self._words.values:
            return text
        pieces, last = [], 0
        for word in self._words.literals.finditer(text):
            pieces += [text[last : word.start()].translate(self._on), word.group()]
            last = word.end()
        return "".join(pieces) + text[last:].translate(self._on)


def characters(value: Any) -> set[str]:
    """Every character in the strings and keys of a JSON value."""
    if isinstance(value, str):
        return set(value)
    if isinstance(value, dict):
        return set().union(*map(set, value), *map(characters, value.values()))
    if isinstance(value, list):
        return set().union(*map(characters, value))
    return set()


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else NEVER


def _literals(source: str) -> Iterator[str]:
    """The quoted strings inside `{{ }}` and `{% %}`, in one pass (a regex for them can be made quadratic)."""
    for part in re.split(r"\{[{%]|[}%]\}", source):
        quote, literal = "", ""
        for piece in re.split(r"(\\.|['\"])", part, flags=re.DOTALL):
            if quote and piece != quote:
                literal += _ESCAPES.get(piece, piece[1:] if piece.startswith("\\") else piece)
            elif quote:
                yield literal
                quote = ""
            elif piece in ("'", '"'):
                quote, literal = piece, ""


_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}
