from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tokenglass.engine import load
from tokenglass.engine.all_rows import all_rows
from tokenglass.engine.stepping import Stepper
from tokenglass.errors import ContextFullError, ParameterError, TokenglassError


def test_every_row_has_the_bits_of_the_step_that_ends_there(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    ids = [(7 * i + 3) % 300 for i in range(70)]
    rows = np.concatenate([logits.numpy().copy() for _, logits in all_rows(engine, ids)])
    assert rows.shape == (70, 300)
    for i in (1, 32, 33, 70):
        with Stepper(engine, ids[:i]) as stepper:
            np.testing.assert_array_equal(rows[i - 1], stepper.scores().numpy()[0])


def test_pages_come_back_when_the_reader_leaves(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    for _ in all_rows(engine, [5] * 100):
        break
    engine.scheduler.pool.check([])


def test_a_text_that_cannot_run_is_refused(tiny_model_path: Path) -> None:
    engine = load(tiny_model_path, num_threads=1)
    for ids in ([], [300], [-1]):
        with pytest.raises(ParameterError):
            next(iter(all_rows(engine, ids)))
    with pytest.raises(ContextFullError):
        next(iter(all_rows(engine, [5] * 513)))
    held = engine.scheduler.pool.take(engine.scheduler.pool.num_free)
    with pytest.raises(TokenglassError, match="pages"):
        next(iter(all_rows(engine, [5])))
    engine.scheduler.pool.give_back(held)
