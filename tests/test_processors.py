"""Threads from cores and quota, read from made-up /sys and /proc trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenglass.processors import Processors, memory_bytes, memory_limit, read_processors

CPU = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def hyperthreaded(num_cores: int) -> dict[str, str]:
    """Processors n and n + num_cores are one core."""
    return {
        CPU.format(number): f"{number % num_cores},{number % num_cores + num_cores}"
        for number in range(2 * num_cores)
    }


def test_two_threads_of_one_core_count_once(tmp_path: Path) -> None:
    root = tree(tmp_path, hyperthreaded(4))
    assert read_processors(root, range(8)) == Processors(8, 4)
    assert read_processors(root, range(8)).num_threads == 4


def test_only_processors_this_process_may_use_count(tmp_path: Path) -> None:
    root = tree(tmp_path, hyperthreaded(4))
    assert read_processors(root, {0, 4}) == Processors(2, 1)
    assert read_processors(root, {0, 5}) == Processors(2, 2)


def test_without_topology_every_processor_is_a_core(tmp_path: Path) -> None:
    assert read_processors(tmp_path, range(3)) == Processors(3, 3)


@pytest.mark.parametrize(
    ("files", "quota", "num_threads"),
    [
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}, None, 4),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "250000 100000"}, 2.5, 2),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5, 1),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "900000 100000"}, 9.0, 4),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "nonsense"}, None, 4),
        (  # the group around it is the narrower one
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/b/cpu.max": "300000 100000",
                "sys/fs/cgroup/a/cpu.max": "200000 100000",
            },
            2.0,
            2,
        ),
        (  # in a container: the path is the host's, the tree is the container's
            {"proc/self/cgroup": "0::/host/docker/1a2b", "sys/fs/cgroup/cpu.max": "150000 100000"},
            1.5,
            1,
        ),
        (  # version 1
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,cpuacct:/docker/1a2b\n0::/",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            3.0,
            3,
        ),
        (  # version 1, mounted under the controller's own name, without a limit
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            None,
            4,
        ),
    ],
)
def test_quota_of_the_control_group_is_kept(
    tmp_path: Path, files: dict[str, str], quota: float | None, num_threads: int
) -> None:
    found = read_processors(tree(tmp_path, files), range(4))
    assert found == Processors(4, 4, quota)
    assert found.num_threads == num_threads


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"}, None),
        ({"proc/self/cgroup": "0::/x", "sys/fs/cgroup/memory.max": "1000000000"}, 10**9),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n1:cpu:/",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000000000",
            },
            2 * 10**9,
        ),
    ],
)
def test_memory_of_the_control_group(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    assert memory_limit(tree(tmp_path, files)) == limit


def test_this_machine_has_at_least_one_thread() -> None:
    found = read_processors()
    assert 1 <= found.num_threads <= found.cores <= found.logical


def test_memory_is_the_machine_s_unless_the_group_may_have_less(tmp_path: Path) -> None:
    whole = memory_bytes(tree(tmp_path, {"proc/self/cgroup": "0::/x"}))
    assert whole is not None
    files = {"proc/self/cgroup": "0::/x", "sys/fs/cgroup/memory.max": "1000000"}
    assert memory_bytes(tree(tmp_path, files)) == 10**6 < whole
