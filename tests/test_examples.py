"""Every example runs as its first line says, and prints what it is there to show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tokenglass as tg

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWS = {  # what must be in the output, as regular expressions in this order
    "tokens": [r"33 characters, 51 bytes, 15 tokens", r"9624  20 74 6f 6b", "back again: 大模型 predicts"],
    "pieces": [r"44652, 249, 47222, 37911, 247, 20887, 129", r"\(0, 1\), \(0, 1\), \(1, 2\)", "0.57 char"],
    "logits": [r"'天空是': logits \(49152,\) float32", "all others", "temperature 0.2: ' a' has 100.0%"],
    "sampler": [r"0.1: +\d different tokens", r"1.5: +\d\d different tokens"],
    "greedy_loop": [r"7042  ' Paris'", r"by hand:  ('.*')\ngenerate: \1"],
    "sampling_loop": [r"(.*rank +\d+ of +\d+ left by top-p.*\n){12}", "Once upon a time"],
    "generate": [r"seed 1: (.*)\nseed 2: (?!\1).*\nseed 1: \1", "= 35 tokens"],
    "speed": [r"64 tokens, 64 forward passes", r"prefill +\d+ tokens/s", r"decode +\d+ tokens/s"],
    "cache": [r"with the cache +\d+", r"without +\d+", "23,040 bytes a token"],
    "score": ["nan  'The'", r"\d  '\.'", "perplexity.*France\\.", "perplexity.*Spain"],
    "stop": [r"\(length\)", r"' Paris\.' \(stop\)", r"' Paris' \(stop\)", r"token 2, <\|im_end\|>"],
    "stream": [r"\((stop|length): \d+ tokens\)", r"\(\d+, ''\), \(\d+, '[^']+'\)"],
    "chat": ["> What is the capital of France\\?\n.*Paris", "> And which river"],
}


def names() -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_every_example_is_listed_and_short() -> None:
    assert names() == sorted(SHOWS)
    listed = re.findall(r"^\| `(\w+)\.py`", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == names()
    for name in names():
        num_lines = len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines())
        assert 10 <= num_lines <= 40, name


@pytest.mark.real_models
@pytest.mark.parametrize("name", names())
def test_example_shows_what_it_is_there_for(name: str, real_model_path: Path) -> None:
    source = str(Path(tg.__file__).parents[1])
    outcome = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", real_model_path],
        env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    at = 0
    for pattern in SHOWS[name]:
        match = re.compile(pattern).search(outcome.stdout, at)
        assert match, f"{pattern!r} is not in:\n{outcome.stdout}"
        at = match.end()
