"""Every kernel gives the same bits on every instruction set and on another kind of processor.

`tests/csrc/isa_digest.cpp` runs each kernel on drawn numbers (NaN, infinities, ties, codes of -128 among
them) and prints a digest of what it gave: built for this processor, for all sets that run here; built for
AArch64 and run by an emulator, for NEON and for plain C++ there.
"""

from __future__ import annotations

import platform
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kernels.support import ISAS
from tests.kernels.units import COMMON, CSRC, ROOT, Units, compile_unit, output_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ARM_COMPILER, ARM_EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"

Digests = dict[str, dict[str, str]]  # set -> kernel -> digest


def digests_of(compiler: str, machine: str, folder: Path, emulator: str = "") -> Digests:
    for needed in filter(None, (compiler, emulator)):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")
    units, program = Units.of(machine), folder / "isa_digest"
    objects = {isa: folder / f"{isa}.o" for isa in units.flags}

    def build(isa: str) -> None:
        compile_unit(compiler, isa, ["-O3", *units.flags[isa]], objects[isa])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, units.flags))
    sources = [ROOT / "tests" / "csrc" / "isa_digest.cpp", CSRC / "cpu.cpp"]
    output_of(
        compiler,
        *COMMON,
        "-O1",
        *units.definitions,
        "-static",
        "-o",
        str(program),
        *map(str, sources),
        *map(str, objects.values()),
    )
    digests: Digests = {}
    for line in output_of(*filter(None, (emulator, str(program)))).splitlines():
        isa, kernel, digest = line.split()
        digests.setdefault(isa, {})[kernel] = digest
    return digests


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    return digests_of("c++", platform.machine(), tmp_path_factory.mktemp("here"))


def test_every_set_of_this_processor_gives_the_same_bits(here: Digests) -> None:
    assert list(here) == ISAS
    assert len(set(here["plain"].values())) == len(here["plain"]), (
        "two kernels with one digest: nothing was run"
    )
    for isa in ISAS:
        assert here[isa] == here["plain"], isa


def test_neon_gives_the_same_bits(here: Digests, tmp_path: Path) -> None:
    arm = digests_of(ARM_COMPILER, "aarch64", tmp_path, ARM_EMULATOR)
    assert list(arm) == ["neon", "plain"]
    for isa, digests in arm.items():
        assert digests == here["plain"], isa
