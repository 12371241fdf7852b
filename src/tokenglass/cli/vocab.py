"""`tokenglass tokens --vocab PATTERN` and `--special`: looking into a vocabulary.

the        tokens whose text holds it, exact and short ones first
/^ [a-z]+$/    a regular expression (Python's), on the text; stopped after two seconds
0xE5A4A9   tokens whose bytes hold these
#123       one id
"""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tokenglass.cli.columns import columns, left, quoted, right
from tokenglass.cli.language import t
from tokenglass.cli.output import write
from tokenglass.errors import ParameterError
from tokenglass.tokens import Vocabulary
from tokenglass.tokens.vocabulary import TokenKind

REGEX_S = 2.0  # some patterns take centuries
MAX_PATTERN = 1000


def search(vocabulary: Vocabulary, pattern: str, *, limit: int, name: str, as_json: bool) -> None:
    """Prints the tokens that `pattern` names; `limit` 0: all. ParameterError: it is no pattern."""
    found = find(vocabulary, pattern)
    shown = found[: limit or len(found)]
    if as_json:
        tokens = [_record(vocabulary, i) for i in shown]
        write(
            json.dumps({"model": name, "num_found": len(found), "tokens": tokens}, ensure_ascii=False) + "\n"
        )
        return
    lines = [_line(vocabulary, i) for i in shown]
    lines.append(
        t("{n} of {total} tokens", n=f"{len(found):,}", total=f"{vocabulary.num_tokens:,}")
        + (t(", {n} shown (--limit 0 shows all)", n=len(shown)) if len(shown) < len(found) else "")
    )
    write("\n".join(lines) + "\n")


def special_tokens(vocabulary: Vocabulary, *, name: str, as_json: bool) -> None:
    """Prints every token that is not plain text, and what it is for."""
    ids = [i for i in range(vocabulary.num_tokens) if vocabulary.kinds[i] not in _PLAIN]
    if as_json:
        tokens = [_record(vocabulary, i) for i in ids]
        write(json.dumps({"model": name, "tokens": tokens}, ensure_ascii=False) + "\n")
        return
    unused = sum(1 for i in ids if vocabulary.kind(i) is TokenKind.UNUSED)
    lines = [_line(vocabulary, i) for i in ids if vocabulary.kind(i) is not TokenKind.UNUSED]
    if unused:
        lines.append(t("{n} unused", n=f"{unused:,}"))
    lines.append(t("{n} of {total} tokens are special", n=len(ids), total=f"{vocabulary.num_tokens:,}"))
    write("\n".join(lines) + "\n")


def find(vocabulary: Vocabulary, pattern: str) -> list[int]:
    """Ids that match: of a text, exact ones first, then by length, then by id; else by id."""
    if not pattern:
        raise ParameterError("vocab", "is empty", remedy="Give a text, /regex/, 0xBYTES or #ID")
    if len(pattern) > MAX_PATTERN:
        raise ParameterError("vocab", f"has more than {MAX_PATTERN} characters")
    num = vocabulary.num_tokens
    if re.fullmatch(r"#\d{1,12}", pattern):
        token_id = int(pattern[1:])
        if token_id >= num:
            raise ParameterError("vocab", f"{pattern} is outside the vocabulary: ids end at #{num - 1}")
        return [token_id]
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        return _find_regex(vocabulary, pattern[1:-1])
    if re.fullmatch(r"0[xX](?:[0-9a-fA-F]{2})+", pattern):
        wanted = bytes.fromhex(pattern[2:])
    else:
        wanted = pattern.encode()
    found = [i for i in range(num) if wanted in vocabulary.token_bytes(i)]
    return sorted(found, key=lambda i: (len(vocabulary.token_bytes(i)), i))


def _find_regex(vocabulary: Vocabulary, expression: str) -> list[int]:
    try:
        matches: Callable[[str], Any] = re.compile(expression).search
    except (re.error, OverflowError, RecursionError) as error:
        raise ParameterError("vocab", f"is no regular expression: {error}") from None
    with _at_most(REGEX_S):
        return [
            i
            for i in range(vocabulary.num_tokens)
            if matches(vocabulary.token_bytes(i).decode(errors="replace"))
        ]


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """ParameterError when the block takes longer. Where there is no such timer, Ctrl-C ends it."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise ParameterError(
            "vocab", f"takes longer than {seconds:g} s", remedy="Avoid repeats inside repeats"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_PLAIN = (TokenKind.NORMAL, TokenKind.BYTE)


def roles(vocabulary: Vocabulary, token_id: int) -> list[str]:
    """What the model file uses the token for: `BOS`, `EOS`, `end`, …"""
    named = {
        "BOS": vocabulary.bos_id,
        "EOS": vocabulary.eos_id,
        "UNK": vocabulary.unknown_id,
        "PAD": vocabulary.pad_id,
    }
    found = [name for name, i in named.items() if i == token_id]
    return [*found, "end"] if token_id in vocabulary.end_ids else found


def _line(vocabulary: Vocabulary, token_id: int) -> str:
    raw = vocabulary.token_bytes(token_id)
    kind = vocabulary.kind(token_id)
    notes = [] if kind is TokenKind.NORMAL else [kind.name.lower().replace("_", "-")]
    notes += roles(vocabulary, token_id)
    cells = max(16, columns() - 46)
    line = (
        f"{right(f'#{token_id}', 8)}  {left(quoted(raw), cells)} {left(raw.hex(' '), 17)} {' '.join(notes)}"
    )
    return line.rstrip()


def _record(vocabulary: Vocabulary, token_id: int) -> dict[str, Any]:
    raw = vocabulary.token_bytes(token_id)
    return {
        "id": token_id,
        "text": raw.decode(errors="replace"),
        "bytes": list(raw),
        "kind": vocabulary.kind(token_id).name.lower(),
        "roles": roles(vocabulary, token_id),
    }
