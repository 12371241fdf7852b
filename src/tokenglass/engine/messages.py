"""What the two processes say to each other: `aio.py` asks, `worker.py` tells. How it is packed: `wire.py`.

aio.py                          worker.py
Start(path, settings)   ──►     loads the model
                        ◄──     Ready(…), or Failed(error)
Submit, Cancel, Ping    ──►     read between two steps
                        ◄──     Told(…) after every step: what all sequences got in it
                        ◄──     Failed(error): the engine cannot go on, and the process ends
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tokenglass.engine.request import Piece, Request


@dataclass(frozen=True)
class Start:
    """Load this model; `settings` are the arguments of `engine.load`."""

    path: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Submit:
    """Queue a request. `number` names it from now on; submitted_s: on the clock of time.perf_counter, which
    all processes of a machine share.
    """

    number: int
    submitted_s: float
    request: Request


@dataclass(frozen=True)
class Cancel:
    """Drop a request, running or not. One that has ended already is no error."""

    number: int


@dataclass(frozen=True)
class Ping:
    """Answer with a message that knows all that was asked before."""

    number: int


@dataclass(frozen=True)
class Ready:
    """The model is loaded: what callers need to know of it."""

    context_length: int
    num_tokens: int  # of the vocabulary
    end_ids: frozenset[int]
    kv_bytes_per_token: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Load:
    """How busy the engine is."""

    running: int = 0
    waiting: int = 0
    pages_free: int = 0
    num_pages: int = 0
    num_steps: int = 0  # since it was started


@dataclass(frozen=True)
class Told:
    """What one step gave. `accepted` requests are in the queue; `failed` ones have ended with an error."""

    load: Load
    accepted: tuple[int, ...] = ()
    pieces: tuple[tuple[int, Piece], ...] = ()
    failed: tuple[tuple[int, Exception], ...] = ()
    pong: int = 0  # the newest Ping taken


@dataclass(frozen=True)
class Failed:
    """The whole engine has failed, when it was loaded or in a step."""

    error: Exception


Asked: TypeAlias = Start | Submit | Cancel | Ping
Answered: TypeAlias = Ready | Told | Failed
