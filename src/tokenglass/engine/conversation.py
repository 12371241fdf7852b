"""A chat of many turns that computes only what is new in each.

Every turn renders the whole chat again by the model's template and starts from the longest beginning that its
ids share with what the turn before left in the cache. So an answer is token for token that of a fresh
request, whatever the template does to earlier turns and whatever was edited; only the time differs.

    ids of turn 1   [ system | user 1 | answer 1 ]              all cached when the turn ends
    ids of turn 2   [ system | user 1 | answer 1 | user 2 ]
                      ───────── shared ────────┘   └ computed
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from collections.abc import Sequence as Seq
from typing import Any

from tokenglass.engine.loop import Engine
from tokenglass.engine.request import Piece, Request, Sequence
from tokenglass.sampling import Sampling


class Conversation:
    """The cache between the turns of one chat; the messages belong to the caller.

    conversation = Conversation(engine)
    for piece in conversation.answer([{"role": "user", "content": "hi"}], max_tokens=100): ...

    The engine may answer others meanwhile: what is kept gives way when they need the room.
    """

    def __init__(self, engine: Engine, template: Mapping[str, Any] | None = None) -> None:
        """template: further arguments of `Tokenizer.encode_chat`, the same for every turn."""
        self.engine = engine
        self.template = dict(template or {})
        self._last: Sequence | None = None  # its cache is kept by the scheduler

    def encode(self, messages: Seq[Mapping[str, Any]]) -> list[int]:
        """The ids of a chat, by the model's template. ChatTemplateError, ParameterError."""
        return self.engine.tokenizer.encode_chat(messages, **self.template)

    def answer(
        self,
        messages: Seq[Mapping[str, str]],
        *,
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
        prompt_ids: Seq[int] | None = None,
    ) -> Generator[Piece]:
        """The answer to `messages`, piece by piece. A piece's `timings.cached_tokens` says what was reused.

        prompt_ids: the chat's ids where the caller has them already, such as those that fit the window.
        Closing the iterator early keeps the cache too. ContextFullError: the chat fills the window;
        ChatTemplateError: the model has no template, or it refuses these messages.
        """
        request = Request(
            prompt_ids=self.encode(messages) if prompt_ids is None else prompt_ids,
            sampling=sampling or Sampling(),
            max_tokens=max_tokens,
        )
        sequence = self.engine.submit(request, reuse=self._last, keep=True)
        try:
            yield from self.engine.follow(sequence)
        finally:
            if sequence in self.engine.scheduler.kept:
                self._last = sequence

    def close(self) -> None:
        """Gives the cache back. The next answer computes everything again."""
        if self._last is not None:
            self.engine.scheduler.forget(self._last)
            self._last = None
