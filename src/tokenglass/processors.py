"""How many threads this machine is good for: cores, not hyperthreads, and no more than the container may use.

Two threads of one core share the units that the products keep busy, so a second one only takes turns with the
first. A quota of 1.5 processors stops a group with two busy threads a quarter of the time, in the middle of a
step and both at once; one thread is faster. All of it is read from Linux' files: sysfs for the cores
(https://docs.kernel.org/admin-guide/cputopology.html), the control group, version 1 or 2, for the quota.
`root` is another file system for tests.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


@dataclass(frozen=True)
class Processors:
    """Logical processors this process may run on, the cores they belong to, and the control group's quota in
    processors (None: no limit).
    """

    logical: int
    cores: int
    quota: float | None = None

    @property
    def num_threads(self) -> int:
        """The default of `--threads`: one for each core, whole processors of the quota, at least one."""
        return max(1, self.cores if self.quota is None else min(self.cores, int(self.quota)))


def read_processors(root: Path = ROOT, allowed: Collection[int] | None = None) -> Processors:
    """What the system says; `allowed`: processor numbers, by default those this process may run on."""
    if allowed is None:
        if not hasattr(os, "sched_getaffinity"):  # not Linux
            num = os.cpu_count() or 1
            return Processors(num, num)
        allowed = os.sched_getaffinity(0)
    siblings = {read_line(core_file(root, number)) or str(number) for number in allowed}
    return Processors(len(allowed), len(siblings), cpu_quota(root))


def core_file(root: Path, number: int) -> Path:
    """The file that names the logical processors of one core, alike for all of them: `0,64`."""
    return root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"


def cpu_quota(root: Path = ROOT) -> float | None:
    """Processors that this process' control group and the groups around it may use; None: no limit."""
    quotas = []
    for folder in cgroup_folders(root, "cpu"):
        words = (read_line(folder / "cpu.max") or "").split()  # version 2: quota and period, microseconds
        if not words:
            words = [read_line(folder / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        try:
            quota, period = map(int, words)
        except ValueError:
            continue  # `max`, or no such file
        if quota > 0 and period > 0:  # -1 is no limit
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Bytes that the control group may have in memory; None: no limit."""
    limits = []
    for folder in cgroup_folders(root, "memory"):
        text = read_line(folder / "memory.max") or read_line(folder / "memory.limit_in_bytes") or ""
        if text.isdecimal() and int(text) < 1 << 60:  # version 1 writes "no limit" as a huge number
            limits.append(int(text))
    return min(limits, default=None)


def memory_bytes(root: Path = ROOT) -> int | None:
    """Memory that this process may use: the machine's, or less where a control group says so; None: not
    known.
    """
    known = [memory_limit(root)]
    if hasattr(os, "sysconf"):  # everywhere but on Windows
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min((num_bytes for num_bytes in known if num_bytes is not None), default=None)


def cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process' control group and of every group around it, in both versions' trees.

    Inside a container the path is often the host's while the tree begins at the container: what is not there
    is passed over by the reader, and the tree's own root comes last.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:  # `0::/path` is version 2, `4:cpu,cpuacct:/path` version 1
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            tree = root / "sys/fs/cgroup"
        elif controller in names.split(","):
            tree = (
                root / "sys/fs/cgroup" / (names if (root / "sys/fs/cgroup" / names).is_dir() else controller)
            )
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for length in range(len(parts), -1, -1):
            yield tree.joinpath(*parts[:length])


def read_line(path: Path) -> str | None:
    """A small file's only line; None where there is none, or nothing in it."""
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeError):
        return None
