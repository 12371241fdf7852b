"""Starts the engine's process, and says how it ended.

A fresh interpreter, never a fork: the caller may have threads, and a fork would copy their locks. It imports
from the same places as the caller, and has no stdin. Its session is its own: a terminal's Ctrl-C is for the
caller.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from asyncio import subprocess

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[3:]; from tokenglass.engine.worker import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]))"
)


async def start_worker() -> tuple[subprocess.Process, socket.socket]:
    """The process, and our end of its socket, non-blocking. It ends when that is closed. OSError."""
    ours, theirs = socket.socketpair()
    try:
        process = await subprocess.create_subprocess_exec(
            sys.executable,
            "-P",  # no module comes from the folder we happen to be in
            "-c",
            _PROGRAM,
            str(theirs.fileno()),
            str(os.getpid()),
            *map(os.path.abspath, sys.path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # stderr is the caller's: a crash says there where it was
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return process, ours


def end_of(returncode: int) -> tuple[str, str]:
    """How a process with this return code ended, and what may help."""
    if returncode >= 0:
        return f"exit status {returncode}", "Load the model again"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    if returncode == -signal.SIGKILL:
        return f"killed ({name})", "If the machine ran out of memory, take a smaller context (--context)"
    return f"killed ({name})", "Load the model again"
