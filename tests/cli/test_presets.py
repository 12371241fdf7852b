"""`tokenglass presets` and `run --preset`: the numbers, their reasons, and that an option beside one wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tokenglass.cli.presets import PRESETS
from tokenglass.sampling import Sampling


@pytest.fixture
def run(tokenglass_: Command, tiny_model_path: Path) -> Command:
    return lambda *arguments: tokenglass_(
        "run", "-m", tiny_model_path, "hello", "--max-tokens", 1, "--json", *arguments
    )


def test_numbers_are_where_experience_puts_them() -> None:
    assert all(0.1 <= PRESETS[name].temperature <= 0.3 for name in ("code", "maths"))
    assert PRESETS["chat"].temperature == pytest.approx(0.7, abs=0.1)
    assert 0.7 <= PRESETS["creative"].temperature <= 1.0
    assert PRESETS["creative"].top_p < 1


@pytest.mark.parametrize("name", PRESETS)
def test_preset_sets_what_it_says_and_nothing_else(run: Command, name: str) -> None:
    settings = run("--preset", name, "--seed", 3).json["settings"]
    expected = Sampling(temperature=PRESETS[name].temperature, top_p=PRESETS[name].top_p, seed=3)
    assert {key: settings[key] for key in vars(expected) if key != "logit_bias"} == {
        key: value for key, value in vars(expected).items() if key != "logit_bias"
    }
    assert settings["preset"] == name


def test_option_beside_a_preset_wins_even_with_an_off_value(run: Command) -> None:
    settings = run("--preset", "chat", "--temperature", 0, "--top-p", 1).json["settings"]
    assert (settings["temperature"], settings["top_p"]) == (0.0, 1.0)
    settings = run("--preset", "chat", "--temperature", 0.5).json["settings"]
    assert (settings["temperature"], settings["top_p"]) == (0.5, PRESETS["chat"].top_p)


def test_every_option_reaches_the_engine(run: Command) -> None:
    given = {
        "temperature": 0.5, "top_k": 9, "top_p": 0.8, "min_p": 0.1, "typical_p": 0.7,
        "repetition_penalty": 1.2, "presence_penalty": -0.5, "frequency_penalty": 0.25, "seed": 11,
    }  # fmt: skip
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
    settings = run(*options, "--logit-bias", "5=1.5", "--logit-bias", "6=-100").json["settings"]
    assert {name: settings[name] for name in given} == given
    assert settings["logit_bias"] == {"5": 1.5, "6": -100.0}


def test_banned_token_does_not_come(run: Command) -> None:
    best = run().json["token_ids"][0]
    assert run("--logit-bias", f"{best}=-100").json["token_ids"][0] != best


def test_page_says_each_preset_and_why_in_both_languages(tokenglass_: Command) -> None:
    english, chinese = tokenglass_("presets"), tokenglass_("presets", "--lang", "zh")
    assert max(map(len, english.out.splitlines())) <= 80
    for name, preset in PRESETS.items():
        numbers = f"--temperature {preset.temperature:g} --top-p {preset.top_p:g}"
        assert any(line.split(None, 1) == [name, numbers] for line in english.out.splitlines())
        assert any(line.split(None, 1) == [name, numbers] for line in chinese.out.splitlines())
    assert "概率" in chinese.out
    assert "token" not in chinese.out


def test_json_has_numbers_and_reasons(tokenglass_: Command) -> None:
    record = tokenglass_("presets", "--json").json
    assert list(record) == ["code", "maths", "chat", "creative"]
    assert record["chat"]["temperature"] == 0.7
    assert record["chat"]["why"]


@pytest.mark.parametrize(("temperature", "share"), [(0.2, 32), (0.1, 1024)])
def test_shares_in_the_reasons_are_right(temperature: float, share: int) -> None:
    assert 0.5 ** (1 / temperature) == pytest.approx(1 / share)
