"""The units of kernels as CMakeLists.txt has them, for tests that compile them again.

The flags are read from there, so that a new instruction set is tested without a word here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CSRC = ROOT / "csrc"
STATEMENT = re.compile(r"^ *(\w+)\(([^()]*)\)$", re.MULTILINE)
COMMON = ["-std=c++20", "-ffp-contract=off", "-fno-math-errno"]


@dataclass(frozen=True)
class Units:
    """What CMakeLists.txt compiles for one processor: definitions for all, flags of each set, worst first."""

    definitions: list[str]
    flags: dict[str, list[str]]

    @staticmethod
    def of(machine: str) -> Units:
        """`machine`: x86_64 or aarch64, as CMAKE_SYSTEM_PROCESSOR says it."""
        units, is_ours = Units([], {}), True
        for command, arguments in STATEMENT.findall((ROOT / "CMakeLists.txt").read_text("utf-8")):
            words = arguments.split()
            if command in ("if", "elseif", "endif"):
                is_ours = words[:1] != ["CMAKE_SYSTEM_PROCESSOR"] or bool(
                    re.search(words[2].strip('"'), machine)
                )
            elif is_ours and command == "tg_isa":
                units.flags[words[0]] = words[1:]
            elif is_ours and command == "target_compile_definitions" and words[0] == "_native":
                units.definitions.extend(f"-D{word}" for word in words[2:])
        return units


def output_of(program: str, *arguments: str) -> str:
    """What a tool prints; the test is skipped where it is not installed."""
    path = shutil.which(program) or pytest.skip(f"{program} is not installed")
    return subprocess.run([path, *arguments], check=True, capture_output=True, text=True, timeout=900).stdout


def compile_unit(compiler: str, isa: str, flags: list[str], output: Path) -> None:
    """isa.cpp for one instruction set; `flags` are its own and, say, the optimisation."""
    output_of(
        compiler,
        *COMMON,
        "-fno-exceptions",
        f"-DTG_ISA_NAME={isa}",
        *flags,
        "-c",
        str(CSRC / "isa.cpp"),
        "-o",
        str(output),
    )
