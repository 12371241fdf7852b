"""The engine for asyncio: it runs in a process of its own, and any number of tasks here await its answers.

    async with AsyncEngine.load(path) as engine:
        async for piece in engine.stream(Request(prompt_ids=engine.tokenizer.encode("Hello"))):
            print(piece.text, end="")

The other process makes one message of each step (`worker.py`, `messages.py`); here it is dealt out to those
who wait. Requests, pieces, timings and errors are those of `Engine`, and so are the answers, bit for bit.
Left out: threads. An engine belongs to the event loop that started it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from tokenglass.engine.async_stream import AsyncStream
from tokenglass.engine.load import load, tokenizer_at
from tokenglass.engine.messages import (
    Answered,
    Asked,
    Cancel,
    Failed,
    Load,
    Ping,
    Ready,
    Start,
    Submit,
    Told,
)
from tokenglass.engine.request import Request
from tokenglass.engine.wire import Frames, frame
from tokenglass.engine.worker_process import end_of, start_worker
from tokenglass.errors import ContextFullError, EngineDiedError, ParameterError, TokenglassError, UsageError
from tokenglass.tokens import Tokenizer

MAX_PROMPT_TOKENS = 1 << 20  # more never fit a window, and would only be copied to be refused
MAX_REQUEST_BYTES = 1 << 24  # of a request as it is sent
_CLOSED = ("it was closed", None)
LAST_WORDS_S = 1.0  # for what an ended process has said to arrive


@dataclass(frozen=True)
class Health:
    """What is known of an engine, as its last step told. Ages in seconds.

    stalled_s: how long it has been silent while there are answers to give; 0 when there are none. A model of
    any size gives a sign of life after every step.
    """

    is_alive: bool
    load: Load
    stalled_s: float
    step_age_s: float | None  # None: no step yet
    uptime_s: float


class AsyncEngine:
    """A model in a process of its own. Made by `load`; `async with` starts and ends it."""

    tokenizer: Tokenizer  # text and chats to ids, here and without the weights

    def __init__(self, path: Path | str, settings: dict[str, Any]) -> None:
        self._start_message = Start(os.fspath(path), settings)
        self._process: asyncio.subprocess.Process | None = None
        self._transport: asyncio.Transport | None = None
        self._watching: asyncio.Task[None] | None = None
        self._frames = Frames(Answered)
        self._outbox: list[bytes] = []
        self._streams: WeakValueDictionary[int, AsyncStream] = WeakValueDictionary()
        self._pings: dict[int, asyncio.Future[None]] = {}
        self._number = 0  # of the newest request or ping
        self._load = Load()
        self._started_s = self._heard_s = 0.0
        self._stepped_s: float | None = None
        self._end: tuple[str, str | None] | None = None  # how it ended, and what helps
        self._last_words: str | None = None
        self._is_closing = False

    @classmethod
    def load(cls, path: Path | str, **settings: Any) -> AsyncEngine:
        """An engine that is yet to be started; `settings` as for `engine.load`. TypeError: none is called so.

        Starting it (`async with`, or `start`) loads the model, and raises what `engine.load` would raise.
        """
        inspect.signature(load).bind(path, **settings)
        return cls(path, settings)

    async def __aenter__(self) -> AsyncEngine:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the process and waits until the model is loaded. Errors as for `engine.load`;
        EngineDiedError: the process ended before it had the model.
        """
        if self._process is not None:
            raise UsageError("the engine has been started before")
        loop = self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Ready] = loop.create_future()
        self._is_lost = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._started_s = self._heard_s = time.perf_counter()
        self._process, connected = await start_worker()
        try:
            self._watching = asyncio.create_task(self._watch(self._process))
            self._transport, _ = await loop.create_unix_connection(lambda: _Channel(self), sock=connected)
            self._post(self._start_message)
            settings = self._start_message.settings
            known = {name: settings[name] for name in ("engine", "trust_remote_code") if name in settings}
            ready, tokenizer = await asyncio.gather(
                self._ready,
                asyncio.to_thread(tokenizer_at, self._start_message.path, **known),
                return_exceptions=True,
            )
            if isinstance(ready, BaseException):
                raise ready
            if isinstance(tokenizer, BaseException):
                raise tokenizer
            # The model has the last word on how many tokens there are, and which of them end an answer.
            vocabulary = tokenizer.vocabulary.padded(ready.num_tokens)
            tokenizer.vocabulary = replace(vocabulary, end_ids=ready.end_ids)
        except BaseException:
            self._ready.cancel()
            connected.close()
            await self.close()
            raise
        self.tokenizer = tokenizer
        self.context_length = ready.context_length
        self.kv_bytes_per_token = ready.kv_bytes_per_token
        self.notes = list(ready.notes)

    def stream(self, request: Request) -> AsyncStream:
        """The answer, piece by piece as it is made; the last piece says why it ended. It is queued at once,
        read or not. Closing the iterator, cancelling the task that waits for it or dropping it drops the
        request, within one step.

        EngineDiedError; what `Engine.submit` would raise comes with the first piece. ContextFullError,
        ParameterError at once: a request that is too large to be sent.
        """
        self._check_alive()
        if len(request.prompt_ids) > MAX_PROMPT_TOKENS:
            raise ContextFullError(len(request.prompt_ids), self.context_length)
        self._number += 1
        message = frame(Asked, Submit(self._number, time.perf_counter(), request))
        if len(message) > MAX_REQUEST_BYTES:
            raise ParameterError("request", f"takes {len(message)} bytes, more than {MAX_REQUEST_BYTES}")
        if not self._streams:
            self._heard_s = time.perf_counter()
        self._is_idle.clear()
        stream = AsyncStream(self._loop, self._cancel, self._number)
        self._streams[self._number] = stream
        self._send(message)
        return stream

    async def submit(self, request: Request) -> AsyncStream:
        """`stream`, once the engine has taken the request: whatever refuses it is raised here."""
        stream = self.stream(request)
        await stream.accepted()
        return stream

    @property
    def is_alive(self) -> bool:
        """Whether requests can be made."""
        return self._transport is not None and self._end is None and self._ready.done()

    @property
    def health(self) -> Health:
        """What is known now; costs nothing."""
        now_s = time.perf_counter()
        return Health(
            is_alive=self.is_alive,
            load=self._load,
            stalled_s=now_s - self._heard_s if self._streams and self.is_alive else 0.0,
            step_age_s=None if self._stepped_s is None else now_s - self._stepped_s,
            uptime_s=now_s - self._started_s if self._started_s else 0.0,
        )

    async def ping(self) -> Health:
        """What the engine itself says, after all that was asked of it so far. EngineDiedError."""
        self._check_alive()
        self._number += 1
        pong = self._pings[self._number] = self._loop.create_future()
        self._post(Ping(self._number))
        await pong
        return self.health

    async def close(self, *, finish_s: float | None = 0.0) -> None:
        """Ends the process; nothing of it is left. Twice does no harm.

        Open answers have `finish_s` seconds to come to their end (None: as long as it takes), and no new ones
        begin meanwhile. Those that are cut off end with EngineDiedError.
        """
        self._is_closing = True
        if self._streams and finish_s != 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_idle.wait(), finish_s)
        self._end = self._end or _CLOSED
        if self._transport is not None:
            self._transport.abort()
        if self._process is not None and self._watching is not None:
            self._kill()
            await asyncio.shield(self._watching)

    def _check_alive(self) -> None:
        if self._end is not None or self._is_closing:
            raise self._died()
        if not self.is_alive:
            raise UsageError("the engine has not been started", remedy="Use it in `async with`")

    def _died(self) -> EngineDiedError:
        how, remedy = self._end or _CLOSED
        return EngineDiedError(how, remedy=remedy)

    def _post(self, message: Asked) -> None:
        self._send(frame(Asked, message))

    def _send(self, message: bytes) -> None:
        """What is asked in one turn of the loop goes out as one write."""
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(message)

    def _flush(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._outbox))
        self._outbox.clear()

    def _cancel(self, number: int) -> None:
        self._streams.pop(number, None)
        self._post(Cancel(number))
        self._check_idle()

    def _check_idle(self) -> None:
        if not self._streams:
            self._is_idle.set()

    def heard(self, data: bytes) -> None:
        """Takes what the process said; a process that says anything else than messages is ended."""
        try:
            for message in self._frames.push(data):
                self._take(message)
        except (ValueError, TypeError, TokenglassError) as error:
            self._last_words = f"it said what is no message: {error}"
            self._kill()

    def _take(self, message: Answered) -> None:
        self._heard_s = time.perf_counter()
        if isinstance(message, Told):
            self._deal(message)
        elif isinstance(message, Failed):
            if self._ready.done():
                self._last_words = str(message.error)
            else:
                self._ready.set_exception(message.error)
        elif not self._ready.done():
            self._ready.set_result(message)

    def _deal(self, told: Told) -> None:
        if told.load.num_steps != self._load.num_steps:
            self._stepped_s = self._heard_s
        self._load = told.load
        streams = self._streams
        for number in told.accepted:
            if stream := streams.get(number):
                stream.accept()
        for number, piece in told.pieces:
            if stream := streams.get(number):
                stream.push(piece)
                if piece.finish_reason:
                    del streams[number]
        for number, error in told.failed:
            if stream := streams.pop(number, None):
                stream.fail(error)
        for number in [number for number in self._pings if number <= told.pong]:
            pong = self._pings.pop(number)
            if not pong.done():
                pong.set_result(None)
        self._check_idle()

    def lost(self) -> None:
        """The process has closed its end, so it has nothing more to say."""
        self._is_lost.set()
        self._kill()

    def _kill(self) -> None:
        """Not by `Process.kill`: that may take the exit status away from asyncio, which then reports 255."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Waits for the process's end, and then tells everybody who waits for something else."""
        returncode = await process.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_lost.wait(), LAST_WORDS_S)
        if self._transport is not None:
            self._transport.abort()
        if self._end is None:
            how, remedy = end_of(returncode)
            self._end = (self._last_words or how, remedy)
        if not self._ready.done():
            self._ready.set_exception(self._died())
        for pong in self._pings.values():
            if not pong.done():
                pong.set_exception(self._died())
        for stream in list(self._streams.values()):
            stream.fail(self._died())
        self._streams.clear()
        self._is_idle.set()


class _Channel(asyncio.Protocol):
    """Our end of the socket. It is always read: a slow reader of an answer holds nobody up."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    def data_received(self, data: bytes) -> None:
        self._engine.heard(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._engine.lost()
