"""Other engines on the same file, each in a process of its own that sleeps while it is not asked.

How each is measured, as favourably as we know: `llama_cpp.py`, `transformers_peer.py`, `openvino_peer.py`.
Such a module has `HOW`, and a class `Peer(path, num_threads, positions, variant)` whose `generate` runs in
the child.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tokenglass.bench.ours import Times
from tokenglass.errors import TokenglassError, UsageError

COLD_START = """
import json, sys
from llama_cpp import Llama
threads = int(sys.argv[2])
llama = Llama(sys.argv[1], n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)
message = {"role": "user", "content": "The capital of France is"}
llama.create_chat_completion([message], max_tokens=1, temperature=0.0)
from tokenglass.bench.machine import peak_memory_bytes
print(json.dumps({"memory_bytes": peak_memory_bytes()}), flush=True)
"""


@dataclass(frozen=True)
class Kind:
    """An engine we can ask: what is imported, what pip calls it, our module for it, its ways to run."""

    imports: str
    package: str
    module: str
    variants: tuple[str, ...] = ("",)


KINDS = {
    "llama.cpp": Kind("llama_cpp", "llama-cpp-python", "llama_cpp"),  # and Q4_0, when the file can be made so
    "transformers": Kind("transformers", "transformers", "transformers_peer", ("bf16", "f32")),
    "openvino": Kind("openvino_genai", "openvino-genai", "openvino_peer"),
}


@dataclass(frozen=True)
class PeerInfo:
    """What stands beside a peer's numbers, and which file it runs."""

    kind: str
    variant: str
    version: str
    how: str

    @property
    def name(self) -> str:
        """As the tables call it: `llama.cpp`, `llama.cpp Q4_0`, `transformers bf16`."""
        return f"{self.kind} {self.variant}".rstrip()

    def record(self) -> dict[str, str]:
        """For JSON."""
        return {"name": self.name, **asdict(self)}


def find_peers(names: Sequence[str]) -> list[PeerInfo]:
    """What will be measured. UsageError: a name nobody knows; TokenglassError: one that is not installed."""
    found = []
    for name in names:
        if name not in KINDS:
            raise UsageError(f"no engine is called {name!r}", remedy=f"--vs takes {', '.join(KINDS)}")
        kind = KINDS[name]
        if find_spec(kind.imports) is None:
            raise TokenglassError(
                f"bench --vs {name} needs the package {kind.package}",
                remedy=f"Install it: pip install {kind.package}",
            )
        how = import_module(f"tokenglass.bench.{kind.module}").HOW
        for variant in kind.variants:
            found.append(PeerInfo(name, variant, f"{kind.package} {installed(kind.package)}", how))
    return found


def installed(package: str) -> str:
    """The version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def cold_start_command(path: Path, num_threads: int) -> list[str]:
    """For `measure.cold_start`: what a user of llama-cpp-python writes for one token."""
    return [sys.executable, "-c", COLD_START, str(path), str(num_threads)]


class Peer:
    """A peer in a child process; a context manager, and a `Contender` while it is open."""

    def __init__(self, info: PeerInfo, path: Path, *, num_threads: int, positions: int) -> None:
        self.name = info.name
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        arguments = (KINDS[info.kind].module, str(path), num_threads, positions, info.variant)
        self._process = spawn.Process(target=_serve, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def generate(self, prompts: Sequence[Sequence[int]], num_tokens: int, *, keep: bool = False) -> Times:
        """As `Contender` says. TokenglassError: the child is gone."""
        try:
            self._pipe.send(([list(ids) for ids in prompts], num_tokens, keep))
            first_s, rest_s, ids = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise TokenglassError(f"{self.name} stopped; it may not know this model") from error
        return Times(first_s, rest_s, tuple(ids))

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child; may be called again."""
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, module: str, *arguments: Any) -> None:
    """The child: one answer for each question, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    peer = import_module(f"tokenglass.bench.{module}").Peer(*arguments)
    while True:
        try:
            prompts, num_tokens, keep = pipe.recv()
        except EOFError:
            return
        pipe.send(peer.generate(prompts, num_tokens, keep))
