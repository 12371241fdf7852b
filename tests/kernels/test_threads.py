"""Threads: who computes a block changes nothing, callers share a Cpu, and nothing waits for a dead thread."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.support import (
    F32,
    ISAS,
    Ops,
    activations,
    assert_same_bits,
    filled,
    int32,
    native,
    raw_weights,
)


def product_of(
    ops: Ops, cpu: Any, *, rows: int = 2048, num_rows: int = 1, seed: int = 0
) -> Callable[[], F32]:
    """A bound product of many blocks over its own buffers; each call computes it anew."""
    rng = np.random.default_rng(seed)
    linear = ops.Linear(cpu, [ops.Matrix(cpu, "Q8_0", raw_weights(rng, "Q8_0", rows, 64), rows, 64)])
    values, out = activations(rng, num_rows, 64), ops.Rows(num_rows, rows)

    def compute() -> F32:
        linear(filled(ops, values, quantised=True), out)
        result: F32 = out.numpy().copy()
        return result

    return compute


@pytest.mark.parametrize("isa", ISAS)
def test_jobs_of_many_blocks(isa: str) -> None:
    wanted = product_of(*native(isa, 1), rows=20_001, num_rows=70)()
    for num_threads in (2, 3, 8):
        compute = product_of(*native(isa, num_threads), rows=20_001, num_rows=70)
        for _ in range(3):
            assert_same_bits(compute(), wanted)


def test_many_short_jobs_with_pauses() -> None:
    """Workers are met awake, spinning and asleep."""
    compute = product_of(*native(ISAS[0], 8))
    wanted = compute()
    for i in range(2000):
        if i % 50 == 0:
            time.sleep(0.001)
        assert_same_bits(compute(), wanted)


@pytest.mark.parametrize("num_threads", [1, 2, 8])
def test_two_callers_share_a_cpu(num_threads: int) -> None:
    """16 rows and more release the lock, so that these calls really overlap."""
    ops, cpu = native(ISAS[0], num_threads)
    jobs = [product_of(ops, cpu, num_rows=40, seed=seed) for seed in range(3)]
    wanted = [job() for job in jobs]
    differing: list[int] = []

    def work(i: int) -> None:
        for _ in range(200):
            if not np.array_equal(jobs[i](), wanted[i]):
                differing.append(i)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert differing == []


def test_two_callers_share_the_memory_for_partials() -> None:
    """Partials belong to the Cpu: few rows of long contexts use them, with the lock held or without."""
    ops, cpu = native(ISAS[0], 8)
    rng = np.random.default_rng(0)
    length = 700
    pages = ops.KVPages(1, 44, 1, 64, "f16")
    pages.raw(0).view(np.float16)[:] = rng.standard_normal(pages.raw(0).size // 2)
    attention = ops.Attention(cpu, pages, 0, 2, 1024, 0.125)
    table = np.arange(44, dtype=np.int32)[None]

    def job(num_rows: int, seed: int) -> Callable[[], F32]:
        position = np.arange(length - num_rows, length, dtype=np.int32)
        batch = ops.Batch(0 * position, position, 0 * position, table, int32(0))
        qkv = filled(ops, activations(np.random.default_rng(seed), num_rows, 256) * np.float32(3))
        out = ops.Rows(num_rows, 128)

        def compute() -> F32:
            attention(qkv, batch, out)
            result: F32 = out.numpy().copy()
            return result

        return compute

    jobs = [job(num_rows, seed) for seed, num_rows in enumerate((15, 16, 17, 33))]
    wanted = [compute() for compute in jobs]
    differing: list[int] = []

    def work(i: int) -> None:
        for _ in range(100):
            if not np.array_equal(jobs[i](), wanted[i]):
                differing.append(i)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert differing == []


def test_a_cpu_goes_while_others_work() -> None:
    kept = product_of(*native(ISAS[0], 3))
    wanted = kept()
    for num_threads in range(1, 9):
        for uses in range(3):  # never started, woken, asleep
            ops, cpu = native(ISAS[0], num_threads)
            other = product_of(ops, cpu)
            for _ in range(uses):
                other()
            if uses == 2:
                time.sleep(0.001)
            del ops, cpu, other
            gc.collect()
            assert_same_bits(kept(), wanted)


def test_operations_keep_their_cpu_alive() -> None:
    compute = product_of(*native(ISAS[0], 2))  # nobody else holds the Cpu
    gc.collect()
    assert_same_bits(compute(), product_of(*native(ISAS[0], 1))())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(("rows", "started"), [(100, False), (2048, True)])
def test_a_forked_child_computes_and_ends(rows: int, started: bool) -> None:
    """The child has none of the parent's threads: it works alone, and joins nobody when its Cpu goes."""
    jobs = [
        product_of(*native(ISAS[0], 4), rows=rows, num_rows=130)
    ]  # packing 100 rows is one block: no threads
    wanted = jobs[0]() if started else product_of(*native(ISAS[0], 1), rows=rows, num_rows=130)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of exactly this
        child = os.fork()
    if child == 0:
        is_right = np.array_equal(jobs[0](), wanted)
        del jobs[0]
        gc.collect()
        os._exit(0 if is_right else 1)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    assert_same_bits(jobs[0](), wanted)


def test_time_in_operations_is_counted_when_asked() -> None:
    ops, cpu = native(ISAS[0], 2)
    compute = product_of(ops, cpu)
    compute()
    assert cpu.op_seconds == 0.0
    cpu.is_timed = True
    start = time.perf_counter()
    compute()
    assert 0.0 < cpu.op_seconds <= time.perf_counter() - start


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_threads_start_with_the_first_job_and_end_with_the_cpu() -> None:
    def num_threads() -> int:
        return len(os.listdir("/proc/self/task"))

    gc.collect()
    before = num_threads()
    ops, cpu = native(ISAS[0], 5)
    assert num_threads() == before
    compute = product_of(ops, cpu)
    compute()
    assert num_threads() == before + 4
    del ops, cpu, compute
    gc.collect()
    assert num_threads() == before
