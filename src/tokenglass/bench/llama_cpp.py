"""llama.cpp through the C functions of llama-cpp-python: no text is made, the best token is one argmax.

Every number is the better one of flash attention on and off. Several prompts run through its batch API, one
sequence each. Runs in the child process of `peers.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

BATCH, UBATCH = 2048, 512
HOW = (
    f"better of flash attention on and off, n_batch {BATCH}, n_ubatch {UBATCH}, "
    "greedy by argmax, no text made; together: one batch, n_seq sequences"
)
REQUANTISE = """
import sys, llama_cpp
params = llama_cpp.llama_model_quantize_default_params()
params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0
params.allow_requantize = True
params.nthread = int(sys.argv[3])
sys.exit(llama_cpp.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), params))
"""

Answer = tuple[float, float, list[int]]  # seconds to the first tokens, seconds after them, ids of the first


def requantised(path: Path, target: Path, num_threads: int) -> bool:
    """Makes llama.cpp's fastest form of a file, Q4_0, with its own tool; False where it refuses."""
    command = [sys.executable, "-c", REQUANTISE, str(path), str(target), str(num_threads)]
    status = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode
    return status == 0 and target.is_file()


class Peer:
    """One model, and a context for each setting of flash attention and each number of sequences."""

    def __init__(self, path: str, num_threads: int, positions: int, _: str) -> None:
        import llama_cpp

        self.c = llama_cpp
        self.num_threads, self.positions = num_threads, positions
        self.contexts: dict[tuple[int, int, int], Context] = {}
        silent = self._silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(silent, None)
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(
            os.fsencode(path), llama_cpp.llama_model_default_params()
        )
        assert self.model, "llama.cpp cannot read the model"

    def generate(self, prompts: list[list[int]], num_tokens: int, keep: bool) -> Answer:
        """The better times of both settings."""
        num, kept_len = len(prompts), len(prompts[0]) if keep else 0
        needed = sum(map(len, prompts)) + num * num_tokens
        room = needed if num > 1 or keep else self.positions
        answers = []
        for flash in (1, 0):
            key = (flash, num, kept_len)
            if key not in self.contexts or self.contexts[key].room < needed:
                self.contexts[key] = Context(self, flash, num, room + 256)
            answers.append(self.contexts[key].generate(prompts, num_tokens, keep))
        on, off = answers
        return min(on[0], off[0]), min(on[1], off[1]), on[2]


class Context:
    """One context of llama.cpp: sequences 0 … n - 1 in one cache."""

    def __init__(self, peer: Peer, flash: int, num_sequences: int, room: int) -> None:
        c = self.c = peer.c
        params = c.llama_context_default_params()
        params.n_ctx = room
        params.n_batch, params.n_ubatch = BATCH, UBATCH
        params.n_seq_max, params.kv_unified = num_sequences, True
        params.n_threads = params.n_threads_batch = peer.num_threads
        params.flash_attn_type = flash
        params.no_perf = True
        self.handle = c.llama_init_from_model(peer.model, params)
        assert self.handle, "llama.cpp made no context"
        self.memory = c.llama_get_memory(self.handle)
        self.vocab = c.llama_vocab_n_tokens(c.llama_model_get_vocab(peer.model))
        self.batch = c.llama_batch_init(BATCH, 0, 1)
        self.room = room
        self.kept: list[int] = []

    def generate(self, prompts: list[list[int]], num_tokens: int, keep: bool) -> Answer:
        started_s = perf_counter()
        start = 0
        if keep and self.kept == prompts[0]:
            start = len(prompts[0]) - 1
            self.c.llama_memory_seq_rm(self.memory, 0, start, -1)
        else:
            self.c.llama_memory_clear(self.memory, True)
        rows = [
            (ids[i], i, s, i == len(ids) - 1) for s, ids in enumerate(prompts) for i in range(start, len(ids))
        ]
        newest: list[int] = []
        for at in range(0, len(rows), BATCH):
            newest += self.decode(rows[at : at + BATCH])
        self.kept = prompts[0] if keep else []
        first_s = perf_counter()
        answer = [newest[0]]
        for i in range(num_tokens - 1):
            newest = self.decode(
                [
                    (token, len(ids) + i, s, True)
                    for s, (token, ids) in enumerate(zip(newest, prompts, strict=True))
                ]
            )
            answer.append(newest[0])
        return first_s - started_s, perf_counter() - first_s, answer

    def decode(self, rows: list[tuple[int, int, int, bool]]) -> list[int]:
        """One batch of (token, position, sequence, wants logits); the best token of each that wants one."""
        import numpy as np

        batch: Any = self.batch
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, is_wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, is_wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        status = self.c.llama_decode(self.handle, batch)
        assert status == 0, f"llama_decode returned {status}"
        return [
            int(
                np.ctypeslib.as_array(
                    self.c.llama_get_logits_ith(self.handle, i), shape=(self.vocab,)
                ).argmax()
            )
            for i, row in enumerate(rows)
            if row[3]
        ]
