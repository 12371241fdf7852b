"""`tokenglass.kernels`: the instruction set, rows of logits, and a twin with the same names and calls."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.support import ISAS, filled, native
from tokenglass import kernels
from tokenglass.errors import ParameterError
from tokenglass.kernels import reference

FOLDER = Path(kernels.__file__).parent
# Instruction sets, memory, the two limits of the machine, and a base class that the twin does without.
# The oracle of `Merger` is the tokenizers library (tests/tokens).
MERGER = {f"Merger.{name}" for name in ("__init__", "set_merges", "set_places", "encode")}
ONLY_NATIVE = {"runnable_isas", "read_all", "int8_peak", "RowOperation.__call__", "Cpu.reserve", *MERGER}


def calls(path: Path) -> dict[str, list[str]]:
    """Argument names of each public function and method: `Linear.__call__` -> [self, x, out]."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        functions = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for function in functions:
            if isinstance(function, ast.FunctionDef) and not is_property(function):
                found[prefix + function.name] = [argument.arg for argument in function.args.args]
    return found


def is_property(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)


def test_twin_has_every_call_with_the_same_arguments() -> None:
    signatures = calls(FOLDER / "_native.pyi")
    twin: dict[str, list[str]] = {}
    for name in ("reference_rows.py", "reference_attention.py", "reference.py"):
        twin |= {
            call: a for call, a in calls(FOLDER / name).items() if hasattr(reference, call.split(".")[0])
        }
    assert {name: twin.get(name) for name in signatures if name not in ONLY_NATIVE} == {
        name: arguments for name, arguments in signatures.items() if name not in ONLY_NATIVE
    }


def test_best_instruction_set_is_taken() -> None:
    assert ISAS[-1] == "plain"
    assert [kernels.cpu(1, isa).isa for isa in ISAS] == ISAS
    assert kernels.cpu(2).num_threads == 2


@pytest.mark.parametrize("isa", ISAS)
def test_environment_forces_an_instruction_set(isa: str) -> None:
    code = "from tokenglass import kernels; print(kernels.cpu(1).isa)"
    environment = {**os.environ, "TOKENGLASS_ISA": isa}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == isa


def test_unknown_instruction_set_is_named() -> None:
    with pytest.raises(ParameterError, match=r"sse9.*plain"):
        kernels.cpu(1, "sse9")


def test_logits_leave_out_padding() -> None:
    ops, cpu = native(ISAS[0])
    logits = kernels.Logits(cpu, filled(ops, np.array([[1, 3, 3, 9], [2, 1, 0, 9]], np.float32)), vocab=3)
    assert len(logits) == 2
    assert [logits.argmax(row) for row in (0, 1)] == [1, 0]
    assert logits.top(0, 9).tolist() == [1, 2, 0]
    assert logits.numpy().tolist() == [[1, 3, 3], [2, 1, 0]]
    weights, total = logits.weights(1, 0.5)
    np.testing.assert_allclose(weights, np.exp([0, -2, -4]), rtol=1e-6)
    assert total == pytest.approx(weights.sum())
