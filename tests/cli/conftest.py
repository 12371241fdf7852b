"""Running the command line: in this process where that is enough, as a child where streams count."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tokenglass
from tokenglass.cli.main import main

SOURCE = str(Path(tokenglass.__file__).parents[1])  # what is tested here is what the child must run


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that says what was wrong; nothing else may stand there, and nothing on stdout."""
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("tokenglass: ")
        return self.err.removeprefix("tokenglass: ").rstrip("\n")

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value


Command = Callable[..., Outcome]


@pytest.fixture
def tokenglass_(capsys: pytest.CaptureFixture[str]) -> Command:
    """`tokenglass_("run", "hello", "-m", path)` in this process."""

    def call(*arguments: object) -> Outcome:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return call


def child(
    *arguments: object,
    env: dict[str, str] | None = None,
    preexec_fn: Callable[[], object] | None = None,
    **more: Any,
) -> subprocess.Popen[bytes]:
    """`python -m tokenglass …`, its streams as pipes unless said otherwise.

    Its signals do what they do by default: whoever started the tests may have had them ignored (a job in the
    background, nohup), and so would its children.
    """

    def prepare() -> None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if preexec_fn:
            preexec_fn()

    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-m", "tokenglass", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": SOURCE, **(env or {})},
        preexec_fn=None if sys.platform == "win32" else prepare,
        **{**streams, **more},
    )


def finish(process: subprocess.Popen[bytes], text: bytes | None = None) -> Outcome:
    """What a child left behind; fails when it hangs."""
    try:
        out, err = process.communicate(text, timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Outcome(process.returncode, (out or b"").decode(), (err or b"").decode())
