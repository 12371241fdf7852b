"""What is said about the machine, and the speed of reading that everything is compared with."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

from tokenglass.bench.machine import (
    READ_PASSES,
    commit,
    cpu_model,
    describe_machine,
    peak_memory_bytes,
    read_bytes_per_s,
)


class SlowWeights:
    """Two megabytes that take a while to read, less each time."""

    num_bytes = 2_000_000

    def __init__(self, seconds: list[float]) -> None:
        self.seconds = seconds

    def read_all(self) -> int:
        time.sleep(self.seconds.pop(0))
        return 0


def test_speed_is_that_of_the_best_pass() -> None:
    speed = read_bytes_per_s([SlowWeights([0.009, 0.003, 0.006, 0.009, 0.009])])
    assert 2e6 / 0.006 < speed < 2e6 / 0.003


def test_slow_machines_and_large_models_get_fewer_passes() -> None:
    weights = SlowWeights([0.03] * READ_PASSES)
    read_bytes_per_s([weights])
    assert len(weights.seconds) == READ_PASSES - 2


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
