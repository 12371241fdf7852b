"""llama.cpp on the same file, measured as favourably as we know how.

It runs in a process of its own that sleeps while it is not asked, through the C functions of
llama-cpp-python: no text is made, the best token is one argmax. Every number is the better one of flash
attention on and off, with n_batch = n_ubatch = 512. Needs the extra [peers].
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tokenglass.bench.measure import Times
from tokenglass.errors import MissingExtraError, TokenglassError

BATCH = 512
HOW = f"better of flash attention on and off, n_batch = n_ubatch = {BATCH}, greedy by argmax, no text made"
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


def describe() -> dict[str, str]:
    """The peer's name, version and how it is measured. MissingExtraError: it is not installed."""
    if find_spec("llama_cpp") is None:
        raise MissingExtraError("bench --vs llama.cpp", "peers")
    return {"name": "llama.cpp", "version": f"llama-cpp-python {version('llama-cpp-python')}", "how": HOW}


def cold_start_command(path: Path, num_threads: int) -> list[str]:
    """For `measure.cold_start`: what a user of llama-cpp-python writes for one token."""
    return [sys.executable, "-c", COLD_START, str(path), str(num_threads)]


class LlamaCpp:
    """llama.cpp in a child process; a context manager, and a `Contender` while it is open."""

    name = "llama.cpp"

    def __init__(self, path: Path, *, num_threads: int, positions: int) -> None:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(
            target=_serve, args=(theirs, str(path), num_threads, positions), daemon=True
        )
        self._process.start()
        theirs.close()

    def generate(self, ids: Sequence[int], num_tokens: int) -> Times:
        """The better times of both settings. TokenglassError: the child is gone."""
        try:
            self._pipe.send((list(ids), num_tokens))
            on, off = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise TokenglassError("llama.cpp stopped; it may not know this model") from error
        return Times(min(on[0], off[0]), min(on[1], off[1]), tuple(on[2]))

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


# --- in the child ---


def _serve(pipe: Connection, path: str, num_threads: int, positions: int) -> None:
    import llama_cpp

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, None)
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    if not model:
        return
    contexts = [_context(llama_cpp, model, num_threads, positions, flash) for flash in (1, 0)]
    while True:
        try:
            ids, num_tokens = pipe.recv()
        except EOFError:
            return
        pipe.send([_generate(llama_cpp, model, context, ids, num_tokens) for context in contexts])


def _context(llama_cpp: Any, model: Any, num_threads: int, positions: int, flash: int) -> Any:
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = positions + BATCH
    params.n_batch = params.n_ubatch = BATCH
    params.n_threads = params.n_threads_batch = num_threads
    params.flash_attn_type = flash
    params.no_perf = True
    context = llama_cpp.llama_init_from_model(model, params)
    assert context, "llama.cpp made no context"
    return context


def _generate(
    llama_cpp: Any, model: Any, context: Any, ids: list[int], num_tokens: int
) -> tuple[float, float, list[int]]:
    from time import perf_counter

    import numpy as np

    vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
    tokens: list[int] = []
    started_s = first_s = perf_counter()
    for _ in range(num_tokens):
        array = (llama_cpp.llama_token * len(ids))(*ids)
        status = llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(ids)))
        assert status == 0, f"llama_decode returned {status}"
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), shape=(vocab,))
        ids = [int(logits.argmax())]
        tokens += ids
        if len(tokens) == 1:
            first_s = perf_counter()
    return first_s - started_s, perf_counter() - first_s, tokens
