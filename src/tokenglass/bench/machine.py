"""The machine a number was measured on, and what its memory and its processor allow.

Decoding one token reads every weight once, so no engine can decode faster than memory delivers them:
    limit in tokens/s = read speed in bytes/s / bytes of weights that one token reads
The read speed is measured on those very bytes, in the same process and with the same threads. A prompt is
bound by arithmetic instead:
    limit in tokens/s = int8 multiply-adds/s of the processor / multiply-adds of one token
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenglass.kernels import Cpu

READ_PASSES = 5
READ_S = 0.05  # a large model gets fewer passes


def read_bytes_per_s(num_bytes: int, read: Callable[[], object]) -> float:
    """How fast memory delivers what `read` reads: the best of up to five passes, 4 ms per 100 MB each."""
    best_s, started_s = float("inf"), time.perf_counter()
    for _ in range(READ_PASSES):
        pass_s = time.perf_counter()
        read()
        best_s = min(best_s, time.perf_counter() - pass_s)
        if time.perf_counter() - started_s > READ_S:
            break
    return num_bytes / max(best_s, 1e-9)


def int8_per_s(cpu: Cpu) -> float:
    """Multiply-adds a second that this processor's int8 instruction gives: the best of five passes."""
    from tokenglass.kernels import int8_peak  # late: others want this file without the kernels

    num_blocks, best = 64 * cpu.num_threads, 0.0
    started_s = time.perf_counter()
    for _ in range(READ_PASSES):
        pass_s = time.perf_counter()
        num = int8_peak(cpu, num_blocks)
        best = max(best, num / max(time.perf_counter() - pass_s, 1e-9))
        if time.perf_counter() - started_s > READ_S:
            break
    return best


def peak_memory_bytes() -> int | None:
    """The most memory this process ever had in RAM; None where the system does not say (Windows).

    Linux keeps in `ru_maxrss` also what the process was before it became this program, hence /proc first.
    """
    try:
        if found := re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE):
            return int(found[1]) * 1024
    except OSError:
        pass  # no /proc here
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def describe_machine() -> dict[str, Any]:
    """What must stand beside a number: processor, processors in use, system, Python."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cpu_model() -> str:
    """The processor's own name where the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
            return found[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """The git commit of the checkout that `folder` is in, with "+" when files differ from it; else None."""
    try:
        short, changes = (
            subprocess.run(
                ["git", "-C", str(folder), *command], capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for command in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{short}+" if changes else short
