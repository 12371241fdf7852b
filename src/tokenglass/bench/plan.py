"""What one measurement consists of: which parts, how long, how often; and the text it is made on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tokenglass.cache import PAGE_TOKENS
from tokenglass.cache.pages import pages_for
from tokenglass.tokens import Tokenizer

PARTS = ("prefill", "decode", "rows", "cold")
ROW_PROMPT = 16  # tokens before each of several answers
TEXT = (
    "A language model does one thing: it scores every token that could come next. To score them it "
    "reads all of its weights, layer by layer, and the keys and values of everything that was said "
    "before. One token is then chosen and appended, and the whole begins again. Reading is what takes "
    "the time: memory delivers some tens of gigabytes a second, and the processor waits for it. A "
    "prompt is different. Its tokens are all known, so each weight that arrives is used for many of "
    "them, and now memory waits for the processor. "
)


@dataclass(frozen=True)
class Plan:
    """Lengths in tokens. An empty tuple leaves its part out.

    prefills: lengths of a prompt; depths: tokens that stand before the ones that are decoded; rows: requests
    that step together; decode: tokens of each answer; cold_starts: fresh processes.
    """

    rounds: int = 3
    prefills: tuple[int, ...] = (128, 512)
    depths: tuple[int, ...] = (0, 512)
    rows: tuple[int, ...] = (8, 32)
    decode: int = 64
    cold_starts: int = 3

    def only(self, parts: Sequence[str]) -> Plan:
        """The same without the parts that are not named."""
        return replace(
            self,
            prefills=self.prefills if "prefill" in parts else (),
            depths=self.depths if "decode" in parts else (),
            rows=self.rows if "rows" in parts else (),
            cold_starts=self.cold_starts if "cold" in parts else 0,
        )

    def within(self, context_length: int) -> Plan:
        """The same with what a small window holds: shorter prompts and answers, fewer depths and rows."""
        room = context_length - 1
        plan = replace(self, decode=max(2, min(self.decode, room // 2)))
        pages = context_length // PAGE_TOKENS
        return replace(
            plan,
            prefills=tuple(dict.fromkeys(min(length, room) for length in self.prefills)),
            depths=tuple(depth for depth in self.depths if depth + plan.decode <= room),
            rows=tuple(num for num in self.rows if num * pages_for(ROW_PROMPT + plan.decode) <= pages),
        )

    @property
    def num_ids(self) -> int:
        """Ids of text that the rounds need, all starts included."""
        return max([1, *self.prefills, *self.depths, *(num + ROW_PROMPT for num in self.rows)]) + self.rounds

    @property
    def positions(self) -> int:
        """The context that is enough for every part with one request."""
        return max([1, *self.prefills, *(max(1, depth) + self.decode for depth in self.depths)]) + 1

    def prompts(self, ids: Sequence[int], num: int) -> list[list[int]]:
        """`num` short prompts, each beginning at another place."""
        return [list(ids[i : i + ROW_PROMPT]) for i in range(num)]


QUICK = Plan()
FULL = Plan(rounds=5, prefills=(128, 512, 2048), depths=(0, 512, 4096), rows=(1, 8, 32), decode=128)


def text_ids(tokenizer: Tokenizer, num_ids: int) -> list[int]:
    """That many ids of running English text."""
    ids: list[int] = []
    while len(ids) < num_ids:
        ids += tokenizer.encode(TEXT, bos=False)
    return ids[:num_ids]
