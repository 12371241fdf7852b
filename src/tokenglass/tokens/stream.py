"""Token ids to text, one token at a time: only whole characters come out, and nothing is lost or said twice.

A character may be spread over several tokens (an emoji is often four), so bytes wait until it is complete.
The pieces joined are exactly `decode` of all ids; `decode` is this stream run to its end.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from tokenglass.tokens.vocabulary import Style, Vocabulary
from tokenglass.tokens.wordpiece import is_apart


class TextStream:
    """Decodes ids as they come.

    stream = TextStream(vocabulary)
    [stream.push(i) for i in (172, 217, 108)]   # b"\\xe4" b"\\xbd" b"\\xa0": ['', '', '你']
    stream.finish()                             # '' (or one U+FFFD where the ids stop inside a character)

    `show_control`: write control tokens as their text; otherwise they add nothing.
    `after`: the id that stands before them in a raw prompt; None: they begin a text. SentencePiece puts a
    space before a text, which is taken off again there, once; WordPiece leaves out the space between words.
    """

    def __init__(
        self, vocabulary: Vocabulary, *, show_control: bool = False, after: int | None = None
    ) -> None:
        self._vocabulary = vocabulary
        self._show_control = show_control
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strip_space = after is None and vocabulary.add_space_prefix
        self._joins_words = vocabulary.style is Style.WORDPIECE
        self._before = ""  # WordPiece: the word before, "" at the start
        if self._joins_words and after is not None and not vocabulary.is_control(after):
            self._before = vocabulary.token_bytes(after).decode()

    def push(self, token_id: int) -> str:
        """The text that became whole with this token, often '' inside a character. IndexError: no such id."""
        if self._vocabulary.is_control(token_id):
            if not self._show_control:
                return ""
            return self._decoder.decode(self._vocabulary.token_bytes(token_id))
        raw = self._vocabulary.token_bytes(token_id)
        if self._strip_space and raw:
            self._strip_space = False
            raw = raw.removeprefix(b" ")
        if self._joins_words:
            raw = self._space_before(token_id, raw.decode()) + raw
        return self._decoder.decode(raw)

    def _space_before(self, token_id: int, word: str) -> bytes:
        before, self._before = self._before, word
        return b" " if is_apart(before, word) and not self._vocabulary.continues(token_id) else b""

    def finish(self) -> str:
        """The end of the text: one U+FFFD if the last character is torn, else ''. Call it once."""
        return self._decoder.decode(b"", final=True)


def decode(
    vocabulary: Vocabulary, ids: Iterable[int], *, show_control: bool = False, after: int | None = None
) -> str:
    """The text of `ids`; bytes that are no UTF-8 become U+FFFD. Arguments as for `TextStream`."""
    stream = TextStream(vocabulary, show_control=show_control, after=after)
    return "".join(map(stream.push, ids)) + stream.finish()
