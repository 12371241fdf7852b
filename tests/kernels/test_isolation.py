"""Wide instructions stay where they are allowed: a processor without AVX must never meet one by accident.

The danger is a shared inline function: a copy compiled with AVX-512 for one unit may be the one that the
linker keeps for all. So a unit may define nothing but its table, and its code is one stretch of the library.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tokenglass.kernels import _native

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="no AVX on this processor"
)
SOURCE = Path(__file__).parents[2] / "csrc" / "isa.cpp"
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mf16c"]
FLAGS = {
    "plain": [],
    "avx2": ["-DTG_ISA_AVX2", "-mavx2", "-mfma", "-mf16c"],
    "avxvnni": ["-DTG_ISA_AVXVNNI", "-mavxvnni", "-mavx2", "-mfma", "-mf16c"],
    "avx512": ["-DTG_ISA_AVX512", *AVX512],
    "avx512vnni": ["-DTG_ISA_AVX512VNNI", "-mavx512vnni", *AVX512],
}
# What kernels may call: functions of the C library, which choose their own instructions.
LIBRARY = {"memcpy", "memset", "memmove", "fmaf", "sqrtf", "nearbyintf", "fabsf", "_GLOBAL_OFFSET_TABLE_"}


def output_of(program: str, *arguments: str) -> str:
    path = shutil.which(program) or pytest.skip(f"{program} is not installed")
    return subprocess.run([path, *arguments], check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("isa", FLAGS)
def test_unit_defines_its_table_and_shares_no_function(isa: str, tmp_path: Path) -> None:
    """Compiled without optimisation, every inline function that could be shared is a symbol."""
    unit = str(tmp_path / "isa.o")
    flags = ["-std=c++20", "-O0", "-fPIC", "-fno-stack-protector", f"-DTG_ISA_NAME={isa}", *FLAGS[isa]]
    output_of("c++", *flags, "-c", str(SOURCE), "-o", unit)
    symbols = [line.split()[-2:] for line in output_of("nm", unit).splitlines()]
    called = {name for kind, name in symbols if kind == "U"}
    shared = [name for kind, name in symbols if kind != "U" and (kind.isupper() or kind in "uvw")]
    assert shared == [f"tg_ops_{isa}"]
    assert called <= LIBRARY


def test_wide_registers_are_one_stretch_of_the_library() -> None:
    """ymm and zmm lie together; no function that anything outside could call is among them."""
    library = _native.__file__
    listing = output_of("objdump", "-d", "--no-show-raw-insn", library)
    wide = [int(line.split(":")[0], 16) for line in listing.splitlines() if re.search("%[yz]mm", line)]
    assert wide, "the library has no wide unit"
    exported = [line.split() for line in output_of("nm", "-D", "--defined-only", library).splitlines()]
    functions = {name: int(address, 16) for address, kind, name in exported if kind in "TW"}
    assert "PyInit__native" in functions
    assert [name for name, address in functions.items() if min(wide) <= address <= max(wide)] == []
