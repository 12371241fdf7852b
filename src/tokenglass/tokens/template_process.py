"""Runs a chat template in a process that can be killed: bounds on time, steps, output and memory.

The process starts in about 30 ms and stays for the next call (0.2 ms). It has no packages but MiniJinja.
What runs inside is `template_worker.py`, which also says why a thread would not do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from tokenglass.errors import ChatTemplateError

MAX_SECONDS = 2.0
MAX_SOURCE_CHARS = 1 << 18  # the largest templates in use have about 30,000
BASE_FUEL = 10_000_000  # MiniJinja's steps; an empty loop takes about 0.03 s per million
FUEL_PER_CHAR = 64
MIN_OUTPUT_CHARS = 1 << 22
OUTPUT_PER_INPUT = 16


class TemplateProcess:
    """Renders one template. Threads wait for each other. A killed process is started again."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process without waiting for it, so that it is ready when the first chat comes."""
        with self._lock:
            self._running()

    def close(self) -> None:
        """End the process; the next call starts another."""
        with self._lock:
            self._kill()

    def render(
        self,
        context: Mapping[str, Any],
        disguised: Mapping[str, Any] | None = None,
        disguises: Mapping[str, str] | None = None,
    ) -> tuple[str, str | None]:
        """The template's text for these variables (JSON values, no lone surrogates), and for the same ones
        in disguise: None where the template fails with those. `disguises`: disguise -> character.

        ChatTemplateError: the template refuses the messages, is unusable, or breaks a bound.
        """
        if len(self._source) > MAX_SOURCE_CHARS:
            raise ChatTemplateError(
                f"The chat template has {len(self._source)} characters, and {MAX_SOURCE_CHARS} are allowed"
            )
        body = json.dumps({"context": context, "disguised": disguised}, ensure_ascii=False)
        request = {
            "source": self._source,
            "disguises": disguises or {},
            "fuel": BASE_FUEL + FUEL_PER_CHAR * len(body),
            "max_chars": max(MIN_OUTPUT_CHARS, OUTPUT_PER_INPUT * len(body)),
            "now": time.time(),
        }
        head = json.dumps(request, ensure_ascii=False)
        reply = self._ask(f"{head[:-1]}, {body[1:]}\n".encode())
        if "refused" in reply:
            raise ChatTemplateError(f"The chat template refuses these messages: {reply['refused']}")
        if "error" in reply:
            raise ChatTemplateError(f"The chat template failed: {reply['error']}")
        return reply["text"], reply.get("disguised")

    def _ask(self, line: bytes) -> dict[str, Any]:
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = Timer(MAX_SECONDS, process.kill)
            started = time.monotonic()
            timer.start()
            try:
                process.stdin.write(line)
                process.stdin.flush()
                answer = process.stdout.readline()
            except OSError:  # it died while we wrote
                answer = b""
            except BaseException:  # Ctrl-C: its reply must not be taken for that to the next question
                self._kill()
                raise
            finally:
                timer.cancel()
            if answer.endswith(b"\n"):
                reply: dict[str, Any] = json.loads(answer)
                return reply
            self._kill()
            if time.monotonic() - started >= MAX_SECONDS:
                raise ChatTemplateError(
                    f"The chat template failed: it ran for more than {MAX_SECONDS:g} seconds"
                )
            raise ChatTemplateError(
                "The chat template failed: it broke its own process (too deep or too much memory)"
            )

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._kill()
            worker = Path(__file__).with_name("template_worker.py")
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(worker), _site_of_minijinja()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a terminal's Ctrl-C is for us
            )
            weakref.finalize(self, _end, self._process)
        return self._process

    def _kill(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # unsent bytes for a process that is gone
                pipe.close()


def _site_of_minijinja() -> str:
    spec = find_spec("minijinja")  # without importing it here
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("tokenglass depends on the package minijinja, which is not installed")
    return str(Path(spec.origin).parents[1])
