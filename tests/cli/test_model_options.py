"""Every verb that runs a model takes the same options for how, and passes all of them to the engine."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tokenglass.errors import ParameterError

HOW = {"--context": 64, "--threads": 1, "--activations": "f32", "--kv": "q8", "--weights": "f32"}
ENGINE = {"context_length": 64, "num_threads": 1, "activations": "f32", "kv": "q8", "weights": "f32"}
VERBS: dict[str, list[object]] = {
    "run": ["hi"],
    "next": ["hi"],
    "step": ["hi"],
    "score": ["hi"],
    "embed": ["hi"],
    "perplexity": [__file__],
    "chat": [],
    "explain-cache": ["hi", "--max-tokens", 1],
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_passes_to_the_engine_how_the_model_is_run(
    verb: str, tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[dict[str, Any]] = []

    def refuse(path: Path, **options: Any) -> None:
        passed.append(options)
        raise ParameterError("model", "was not to be loaded")

    monkeypatch.setattr("tokenglass.cli.model_options.load", refuse)
    options = [word for pair in HOW.items() for word in pair]
    assert "was not to be loaded" in tokenglass_(verb, *VERBS[verb], "-m", tiny_model_path, *options).err
    assert ENGINE.items() <= passed[0].items()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_runs_the_model_as_it_was_asked(
    verb: str, tokenglass_: Command, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    options = [word for pair in HOW.items() for word in pair]
    assert tokenglass_(verb, *VERBS[verb], "-m", tiny_model_path, *options).status == 0


def test_explain_cache_refuses_a_window_that_is_not_the_models(
    tokenglass_: Command, tiny_model_path: Path
) -> None:
    outcome = tokenglass_("explain-cache", "hi", "-m", tiny_model_path, "--context", 100_000)
    assert outcome.status == 2
    assert "context_length must be a whole number from 2 to 512" in outcome.err
