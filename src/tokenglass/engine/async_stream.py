"""One answer as it comes out of another process, for one task to read. Made by `AsyncEngine.stream`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from tokenglass.engine.request import Piece

MAX_UNREAD = 32  # pieces


class AsyncStream:
    """An async iterator of pieces. There are thousands of these, so each is small.

    A reader that is slower than the engine gets several tokens in one piece: unread ones are joined, so that
    what waits for it is hardly more than the text itself. Pieces with reasons (`trace_top`) come one by one.
    """

    __slots__ = (
        "__weakref__", "_cancel", "_error", "_is_accepted", "_is_over", "_loop", "_number", "_unread",
        "_waiter",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[int], None], number: int) -> None:
        self._loop, self._cancel, self._number = loop, cancel, number
        self._unread: list[Piece] = []
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None  # told once, after the last piece
        self._is_accepted = False
        self._is_over = False  # nothing more will come

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Piece:
        while not self._unread:
            await self._more()
        if self._unread[0].decision is not None:
            return self._unread.pop(0)
        piece = joined(self._unread)
        self._unread.clear()
        return piece

    async def accepted(self) -> None:
        """Returns once the request is in the queue; raises what refused it."""
        while not self._is_accepted:
            await self._more()

    async def aclose(self) -> None:
        """Drops the request, if it still runs. Nothing more comes out of this iterator."""
        self._unread.clear()
        if not self._is_over:
            self._is_over = True
            self._cancel(self._number)
        self._wake()

    async def _more(self) -> None:
        """Waits for something new. StopAsyncIteration: nothing will come; or the request's error."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._is_over:
            raise StopAsyncIteration
        if self._waiter is not None:
            raise RuntimeError("an answer is for one task to read")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            await self.aclose()
            raise
        finally:
            self._waiter = None

    def accept(self) -> None:
        self._is_accepted = True
        self._wake()

    def push(self, piece: Piece) -> None:
        self._unread.append(piece)
        self._is_over = piece.finish_reason is not None
        if len(self._unread) > MAX_UNREAD and piece.decision is None:
            self._unread = [joined(self._unread)]
        self._wake()

    def fail(self, error: Exception) -> None:
        self._error, self._is_over = error, True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __del__(self) -> None:
        if not getattr(self, "_is_over", True):
            with suppress(RuntimeError):  # the loop is closed; a collector may run in any thread
                self._loop.call_soon_threadsafe(self._cancel, self._number)


def joined(pieces: Sequence[Piece]) -> Piece:
    """Several pieces of one answer as one: its time, counts and end are those of the last."""
    last = pieces[-1]
    if len(pieces) == 1:
        return last
    ids = tuple(chain.from_iterable(piece.token_ids for piece in pieces))
    text = "".join(piece.text for piece in pieces)
    return replace(last, text=text, token_ids=ids)
