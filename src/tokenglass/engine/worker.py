"""The engine's own process: reads what is asked, steps the engine, tells what came of it. `aio.py` starts it.

There is no second loop here: each step is `Engine.step`. Requests and cancellations are read between two
steps, so each takes effect within one. The process ends when the other end of its socket does, however that
came about: a thread watches for it, for a step or a model's loading may take long.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from threading import Thread
from typing import Any

from tokenglass.engine.load import load
from tokenglass.engine.loop import Engine
from tokenglass.engine.messages import Answered, Asked, Cancel, Failed, Load, Ping, Ready, Start, Submit, Told
from tokenglass.engine.request import Piece, Sequence
from tokenglass.engine.wire import Frames, frame
from tokenglass.errors import TokenglassError

READ_BYTES = 1 << 20  # at most so much is read between two steps
WATCH_MS = 1000


def main(descriptor: int, parent: int, load: Callable[..., Engine] = load) -> None:
    """Serves the socket `descriptor` of the process `parent` with the engine that `load` makes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the parent
    faulthandler.enable()
    channel = Channel(socket.socket(fileno=descriptor))
    Thread(target=end_with, args=(parent, channel.socket), daemon=True).start()
    try:
        (start,) = channel.receive(wait=True)
        assert isinstance(start, Start)
        engine = load(start.path, **start.settings)
        vocabulary = engine.tokenizer.vocabulary
        channel.send(
            Ready(
                engine.context_length,
                vocabulary.num_tokens,
                vocabulary.end_ids,
                engine.model.kv_bytes_per_token,
                tuple(engine.model.notes),
            )
        )
        serve(engine, channel)
    except (EOFError, ConnectionError):  # nobody is left to tell
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 (whatever it was, everybody who waits is told)
        if not isinstance(error, TokenglassError | OSError):  # a fault of ours: say where
            traceback.print_exc()
        channel.send(Failed(error))
        sys.exit(1)


class Channel:
    """Messages over a socket, one after the other."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._frames = Frames(Asked)

    def receive(self, *, wait: bool) -> list[Any]:
        """What has come; with `wait` at least one message. EOFError: the other end is closed."""
        while True:
            try:
                data = self.socket.recv(READ_BYTES, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
            if not data:
                raise EOFError
            messages = list(self._frames.push(data))
            if messages or not wait:
                return messages

    def send(self, message: Answered) -> None:
        """Waits while the other end does not read: nothing piles up here."""
        self.socket.sendall(frame(Answered, message))


class Worker:
    """The requests of the other process, by their numbers, and what there is to tell of them."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._open: dict[int, Sequence] = {}
        self._numbers: dict[Sequence, int] = {}
        self._num_steps = 0
        self._pong = 0
        self._accepted: list[int] = []
        self._pieces: list[tuple[int, Piece]] = []
        self._failed: list[tuple[int, Exception]] = []

    @property
    def is_busy(self) -> bool:
        return bool(self.engine.scheduler.running or self.engine.scheduler.waiting)

    def take(self, message: Submit | Cancel | Ping) -> None:
        if isinstance(message, Submit):
            self._submit(message)
        elif isinstance(message, Ping):
            self._pong = message.number
        elif sequence := self._open.get(message.number):
            self.engine.scheduler.drop(sequence)
            self._close(sequence)

    def step(self) -> None:
        for sequence in self.engine.step():
            self._collect(sequence)
        self._num_steps += 1

    def told(self) -> Told:
        """Everything since the last call."""
        scheduler = self.engine.scheduler
        load = Load(
            len(scheduler.running),
            len(scheduler.waiting),
            scheduler.pool.num_free,
            scheduler.pool.num_pages,
            self._num_steps,
        )
        told = Told(load, tuple(self._accepted), tuple(self._pieces), tuple(self._failed), self._pong)
        self._accepted, self._pieces, self._failed = [], [], []
        return told

    def _submit(self, message: Submit) -> None:
        try:
            sequence = self.engine.submit(message.request)
        except Exception as error:  # noqa: BLE001 (a fault in one request is that request's only)
            self._failed.append((message.number, error))
            return
        sequence.timings.submitted_s = message.submitted_s
        self._open[message.number] = sequence
        self._numbers[sequence] = message.number
        self._accepted.append(message.number)
        self._collect(sequence)

    def _collect(self, sequence: Sequence) -> None:
        """Takes what the sequence has got."""
        number = self._numbers.get(sequence)
        if number is None:
            return
        self._pieces += [(number, piece) for piece in sequence.pieces]
        sequence.pieces.clear()
        if sequence.error:
            self._failed.append((number, sequence.error))
        if sequence.error or sequence.finish_reason:
            self._close(sequence)

    def _close(self, sequence: Sequence) -> None:
        del self._open[self._numbers.pop(sequence)]


def serve(engine: Engine, channel: Channel) -> None:
    """Until the other end closes (EOFError, ConnectionError), or a step raises."""
    worker = Worker(engine)
    while True:
        asked = channel.receive(wait=not worker.is_busy)
        for message in asked:
            worker.take(message)
        if asked:
            channel.send(worker.told())  # what was refused need not wait for a step
        if worker.is_busy:
            worker.step()
            channel.send(worker.told())


def end_with(parent: int, connected: socket.socket) -> None:
    """Ends this process at once when the socket's other end is closed, or when the parent is gone while a
    process that it forked still holds that end.
    """
    closed = select.poll()
    closed.register(connected, 0)  # hang-ups and errors are always reported
    while os.getppid() == parent and not closed.poll(WATCH_MS):
        pass
    os._exit(0)
