"""Wide instructions stay where they are allowed: a processor without AVX must never meet one by accident.

The danger is a shared inline function: a copy compiled with AVX-512 for one unit may be the one that the
linker keeps for all. So a unit may define nothing but its table; and in the built library, each instruction
must lie among the functions of a unit that may use it.
"""

from __future__ import annotations

import platform
import re
from bisect import bisect
from pathlib import Path

import pytest

from tests.kernels.units import CSRC, Units, compile_unit, output_of
from tokenglass.kernels import _native

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="no AVX on this processor"
)
LIBRARY = str(_native.__file__)
UNITS = Units.of("x86_64")
# What kernels may call: functions of the C library, which choose their own instructions.
CALLED = {"memcpy", "memset", "memmove", "fmaf", "sqrtf", "nearbyintf", "fabsf", "_GLOBAL_OFFSET_TABLE_"}

WIDE = {"avx2", "avxvnni", "avx512", "avx512vnni"}
# Instructions, and the units that may hold them; the first pattern that fits counts.
ALLOWED = [
    (re.compile(r"\bvpdp\w+ .*%zmm"), {"avx512vnni"}),
    (re.compile(r"\bvpdp\w+ "), {"avxvnni"}),
    (re.compile(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])"), {"avx512", "avx512vnni"}),
    (re.compile(r"%ymm|\bv\w+ .*%xmm"), WIDE),
]


@pytest.mark.parametrize("isa", UNITS.flags)
def test_unit_defines_its_table_and_shares_no_function(isa: str, tmp_path: Path) -> None:
    """Compiled without optimisation, every inline function that could be shared is a symbol."""
    unit = tmp_path / "isa.o"
    compile_unit("c++", isa, ["-O0", "-fPIC", "-fno-stack-protector", *UNITS.flags[isa]], unit)
    symbols = [line.split()[-2:] for line in output_of("nm", str(unit)).splitlines()]
    called = {name for kind, name in symbols if kind == "U"}
    shared = [name for kind, name in symbols if kind != "U" and (kind.isupper() or kind in "uvw")]
    assert shared == [f"tg_ops_{isa}"]
    assert called <= CALLED


def exported_functions() -> dict[str, int]:
    """name -> address."""
    lines = [line.split() for line in output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()]
    return {name: int(address, 16) for address, kind, name in lines if kind in "TW"}


def sections() -> dict[str, tuple[int, int, int]]:
    """name -> first address, address after the last, place in the file."""
    listing = output_of("objdump", "-h", LIBRARY)
    rows = re.findall(r"^ *\d+ (\S+) +(\w+)  (\w+)  \w+  (\w+)", listing, re.MULTILINE)
    return {
        name: (int(start, 16), int(start, 16) + int(size, 16), int(offset, 16))
        for name, size, start, offset in rows
    }


def functions_of_units() -> list[tuple[int, str]]:
    """(address, unit) of every function in a unit's table.

    The library keeps no symbols of units. But a table begins with the unit's name, and what it points to is a
    relocation for the loader.
    """
    header = re.sub("//.*", "", (CSRC / "ops.h").read_text("utf-8"))
    table_bytes = 8 * header.split("struct tg_ops {")[1].split("};")[0].count(";")
    listing = output_of("objdump", "-R", LIBRARY)
    pointers = [
        (int(at, 16), int(to, 16))
        for at, to in re.findall(r"^(\w+) R_X86_64_RELATIVE +\*ABS\*\+0x(\w+)", listing, re.MULTILINE)
    ]
    code, names = sections()[".text"], sections()[".rodata"]
    image = Path(LIBRARY).read_bytes()
    found = []
    for table, name in pointers:
        if names[0] <= name < names[1]:
            start = name - names[0] + names[2]
            unit = image[start : image.index(0, start)].decode("latin-1")
            if unit in UNITS.flags:
                entries = [to for at, to in pointers if table < at < table + table_bytes]
                found += [(to, unit) for to in entries if code[0] <= to < code[1]]
    return found


def test_wide_instructions_lie_in_the_units_that_may_use_them() -> None:
    """Between two functions whose unit is known ("": no unit), code belongs to one of their units."""
    functions = functions_of_units()
    assert {unit for _, unit in functions} == UNITS.flags.keys()
    functions = sorted([*functions, *((address, "") for address in exported_functions().values())])
    starts, units = [address for address, _ in functions], ["", *(unit for _, unit in functions), ""]
    stray, seen = [], set()
    for line in output_of("objdump", "-d", "--no-show-raw-insn", LIBRARY).splitlines():
        allowed = next((allowed for pattern, allowed in ALLOWED if pattern.search(line)), None)
        if allowed is not None:
            at = bisect(starts, int(line.split(":")[0], 16))
            around = {units[at], units[at + 1]}
            seen |= around & allowed
            if not around & allowed:
                stray.append((around, line))
    assert stray == []
    assert seen == WIDE, "units without a wide instruction"


def test_no_function_among_wide_instructions_can_be_called_from_outside() -> None:
    wide = [address for address, unit in functions_of_units() if unit in WIDE]
    exported = exported_functions()
    assert "PyInit__native" in exported
    assert [name for name, address in exported.items() if min(wide) <= address <= max(wide)] == []
