"""What to do with a prompt that does not fit the window. Refusing it is the default (`Scheduler.check`); here
are the two other answers, which must be asked for and always say how many tokens went.

    oldest   the beginning goes: of ids all but the BOS, of a chat whole turns, never a system message and
             never the turn of the last user message
    middle   head and tail stay: of a chat the first turn and the latest ones; where that is not enough, the
             middle of the last user message's own text goes

Nothing is moved later on: an answer ends where the window does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokenglass.errors import ContextFullError, ParameterError
from tokenglass.sampling.params import check_integer
from tokenglass.tokens import Tokenizer

Truncate = Literal["oldest", "middle"]
POLICIES: tuple[Truncate, ...] = get_args(Truncate)
SYSTEM_ROLES = ("system", "developer")
Message = Mapping[str, Any]


@dataclass(frozen=True)
class Fitted:
    """The ids that fit, and how many tokens the prompt has lost."""

    ids: list[int]
    truncated_tokens: int = 0


@dataclass(frozen=True)
class Policy:
    """How a prompt is made to fit `window` tokens.

    reserve: so many stay free for the answer; None: `max_tokens`, or one where it has no limit, and at most
    half the window. ParameterError: an unknown policy, or a reserve that leaves no room for a prompt.
    """

    truncate: Truncate
    window: int
    reserve: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.truncate not in POLICIES:
            raise ParameterError("truncate", f"must be oldest or middle, not {self.truncate!r}")
        if self.reserve is not None:
            check_integer("reserve", self.reserve, 1, self.window - 1)

    @property
    def room(self) -> int:
        """Tokens that a prompt may have."""
        wanted = min(self.max_tokens or 1, self.window // 2) if self.reserve is None else self.reserve
        return self.window - max(1, wanted)

    def fit(self, ids: Sequence[int], *, bos_id: int | None = None) -> Fitted:
        """The ids of a text, a BOS at their front kept."""
        num_out = len(ids) - self.room
        if num_out <= 0:
            return Fitted(list(ids))
        if self.truncate == "oldest":
            num_head = int(ids[0] == bos_id and self.room > 1)
        else:
            num_head = -(-self.room // 2)
        return Fitted([*ids[:num_head], *ids[num_head + num_out :]], num_out)

    def fit_chat(
        self,
        tokenizer: Tokenizer,
        messages: Sequence[Message],
        encode: Callable[[Sequence[Message]], list[int]],
    ) -> Fitted:
        """The ids that `encode` gives of a chat from which turns are left out. ContextFullError: what must
        stay does not fit; errors of `encode`.
        """
        whole = encode(messages)
        if len(whole) <= self.room:
            return Fitted(whole)
        first = int(self.truncate == "middle")  # the first turn that may go
        num_droppable = max(num_turns(messages) - 1 - first, 0)

        def overflow(num_dropped: int) -> int:
            return max(0, len(encode(without(messages, first, num_dropped))) - self.room)

        counts = range(num_droppable + 1)
        num_dropped = bisect_left(counts, 0, key=lambda n: -overflow(n))
        kept = without(messages, first, min(num_dropped, num_droppable))
        ids = encode(kept)
        if len(ids) > self.room and self.truncate == "middle":
            ids = self._cut_last(tokenizer, kept, encode, ids)
        if len(ids) > self.room:
            raise ContextFullError(len(ids), self.window)
        return Fitted(ids, len(whole) - len(ids))

    def _cut_last(
        self,
        tokenizer: Tokenizer,
        messages: Sequence[Message],
        encode: Callable[[Sequence[Message]], list[int]],
        ids: list[int],
    ) -> list[int]:
        """The chat with the middle of its last user message left out, as far as that helps."""
        last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=None)
        if last is None or not isinstance(messages[last].get("content"), str):
            return ids
        text_ids = tokenizer.encode(messages[last]["content"], bos=False)
        num_kept = len(text_ids)
        while len(ids) > self.room and num_kept > 2:
            num_kept = max(2, num_kept - (len(ids) - self.room))
            num_head = -(-num_kept // 2)
            head, tail = text_ids[:num_head], text_ids[len(text_ids) - (num_kept - num_head) :]
            # half a character at a cut is left out too
            text = tokenizer.decode(head).rstrip("\ufffd") + tokenizer.decode(tail).lstrip("\ufffd")
            shorter = {**messages[last], "content": text}
            ids = encode([*messages[:last], shorter, *messages[last + 1 :]])
        return ids


def turn_of(messages: Sequence[Message]) -> list[int]:
    """The number of each message's turn: 0 for what stands before the second user message, and so on."""
    turns, number = [], -1
    for message in messages:
        number += message.get("role") == "user"
        turns.append(max(number, 0))
    return turns


def num_turns(messages: Sequence[Message]) -> int:
    """A turn is a user message and everything up to the next."""
    return turn_of(messages)[-1] + 1 if messages else 0


def without(messages: Sequence[Message], first: int, num: int) -> list[Message]:
    """The messages without the `num` turns from turn `first` on; system messages stay."""
    return [
        message
        for message, turn in zip(messages, turn_of(messages), strict=True)
        if not first <= turn < first + num or message.get("role") in SYSTEM_ROLES
    ]
