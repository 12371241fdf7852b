"""`--slow 2/s`: waits between tokens, so that one can watch. In a terminal space pauses and q ends.

Keys are read without Enter (cbreak mode), and the terminal is as before when the block ends, however it ends.
Where there are no such terminals (a pipe, Windows) the waiting works and the keys do not.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Self

PAUSE, END = " ", "q"


class Pace:
    """`with Pace(2.0) as pace: … pace.wait()`: at most two waits return each second."""

    def __init__(self, tokens_per_s: float) -> None:
        self.period_s = 1.0 / tokens_per_s
        self.has_keys = False
        self.is_ended = False
        self._before: list[Any] = []
        self._last_s = time.perf_counter()

    def __enter__(self) -> Self:
        if sys.stdin is not None and sys.stdin.isatty() and sys.platform != "win32" and not in_background():
            import termios
            import tty

            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            self.has_keys = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._before and sys.platform != "win32":
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def wait(self) -> float:
        """Returns when the next token may come, with the seconds spent here; `is_ended`: q was pressed."""
        started_s = time.perf_counter()
        due_s = self._last_s + self.period_s
        is_paused = False
        while not self.is_ended:
            left_s = max(0.0, due_s - time.perf_counter())
            for key in self._keys(None if is_paused else left_s):
                is_paused ^= key == PAUSE
                self.is_ended |= key == END
            if not is_paused and time.perf_counter() >= due_s:
                break
        self._last_s = time.perf_counter()
        return self._last_s - started_s

    def _keys(self, timeout_s: float | None) -> str:
        """What was typed within `timeout_s` (None: waits for a key)."""
        if not self.has_keys:
            time.sleep(timeout_s or 0.0)
            return ""
        from select import select

        if not select([sys.stdin], [], [], timeout_s)[0]:
            return ""
        typed = os.read(sys.stdin.fileno(), 64)
        self.has_keys = bool(typed)  # nothing: the terminal went away
        return typed.decode("ascii", "replace") or END


def in_background() -> bool:
    """Whether the keyboard belongs to another job (`… &`): touching its settings would stop this one."""
    try:
        return sys.platform != "win32" and os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp()
    except OSError:  # not the terminal that controls this process: nobody stops it
        return False
