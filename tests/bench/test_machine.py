"""What is said about the machine, and the speed of reading that everything is compared with."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tokenglass.bench.machine import (
    READ_PASSES,
    commit,
    cpu_model,
    describe_machine,
    peak_memory_bytes,
    read_bytes_per_s,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that passes take, one after the other: reading moves a made-up clock."""
    now = [0.0]
    monkeypatch.setattr("tokenglass.bench.machine.time.perf_counter", lambda: now[0])
    return now


def passes(clock: list[float], seconds: list[float]) -> Callable[[], None]:
    def read() -> None:
        clock[0] += seconds.pop(0)

    return read


def test_speed_is_that_of_the_best_pass(clock: list[float]) -> None:
    seconds = [0.009, 0.003, 0.006, 0.009, 0.009]
    assert read_bytes_per_s(2_000_000, passes(clock, seconds)) == pytest.approx(2e6 / 0.003)


def test_slow_machines_and_large_models_get_fewer_passes(clock: list[float]) -> None:
    seconds = [0.03] * READ_PASSES
    read_bytes_per_s(2_000_000, passes(clock, seconds))
    assert len(seconds) == READ_PASSES - 2


def test_peak_memory_is_this_programs_own() -> None:
    """A child of a large process must not report its parent's peak."""
    ballast = bytearray(150_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    program = "from tokenglass.bench.machine import peak_memory_bytes; print(peak_memory_bytes())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    own = peak_memory_bytes()
    assert own is not None
    assert own > len(ballast)
    assert own <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + (1 << 20)
    if sys.platform == "linux":
        assert 1_000_000 < int(run.stdout) < 100_000_000


def test_machine_is_described() -> None:
    assert cpu_model()
    assert set(describe_machine()) == {"cpu", "cores", "system", "python"}


def test_commit_is_marked_when_files_differ_from_it(tmp_path: Path) -> None:
    assert commit(tmp_path) is None

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    (tmp_path / "file").write_text("one")
    git("init")
    git("add", "file")
    git("commit", "-m", "one")
    clean = commit(tmp_path)
    assert clean is not None
    assert len(clean) == 12
    (tmp_path / "file").write_text("two")
    assert commit(tmp_path) == clean + "+"
