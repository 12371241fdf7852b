"""The worked example in docs/*/sampling.md is what the stages compute."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tokenglass import kernels
from tokenglass.sampling import Draw, Sampling
from tokenglass.sampling.distribution import distribution

DOCS = Path(__file__).parents[2] / "docs"
LOGITS = np.array([[2.0, 1.0, 0.0, -1.0]], np.float32)
NAMES = {"temperature": "temperature", "温度": "temperature", "top-k": "top_k", "top-p": "top_p"}
NAMES |= {"min-p": "min_p", "typical": "typical_p"}


def rows(language: str) -> list[tuple[dict[str, float], list[float]]]:
    """(settings, four probabilities) of each row of the table that names settings."""
    text = (DOCS / language / "sampling.md").read_text(encoding="utf-8")
    found = []
    for line in text[text.index("| logit | 2 | 1 | 0 | -1 |") :].split("\n\n")[0].splitlines()[1:]:
        head, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        pairs = re.findall(rf"({'|'.join(NAMES)}) ([\d.]+)", head)
        settings = {NAMES[name]: float(value) for name, value in pairs}
        if "top_k" in settings:
            settings["top_k"] = int(settings["top_k"])
        found.append(({"temperature": 1.0, **settings}, [float(cell or 0) for cell in cells]))
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_row_of_the_table(language: str) -> None:
    buffer = kernels.Rows(1, 4)
    buffer.fill(LOGITS)
    logits = kernels.Logits(kernels.cpu(1), buffer, 4)
    table = rows(language)
    assert len(table) == 10
    for settings, expected in table:
        sampling = Sampling(seed=0, **settings)  # type: ignore[arg-type]
        found = distribution(logits, 0, Draw(sampling, [0])).p
        assert found == pytest.approx(expected, abs=6e-5), settings
