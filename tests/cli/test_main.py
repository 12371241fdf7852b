"""The command as a whole: verbs, help, versions, and the exit status of every kind of end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SOURCE, Command, child, finish
from tokenglass import __version__

ROOT = Path(SOURCE)
WALK = (
    "cli/run.py",
    "engine/loop.py",
    "engine/scheduler.py",
    "models/llama.py",
    "sampling/choose.py",
    "tokens/stream.py",
)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_overview_names_every_verb(tokenglass_: Command, arguments: tuple[str, ...]) -> None:
    outcome = tokenglass_(*arguments)
    assert outcome.status == 0
    assert "\n  run " in outcome.out
    assert "\n  bench " in outcome.out
    assert outcome.err == ""


def test_module_and_version() -> None:
    outcome = finish(child("--version"))
    assert (outcome.status, outcome.out) == (0, f"tokenglass {__version__}\n")


def test_misspelt_verb_is_refused_with_the_nearest(tokenglass_: Command) -> None:
    outcome = tokenglass_("rnu", "hello")
    assert outcome.status == 2
    assert outcome.error == "there is no command 'rnu'. Did you mean run? See tokenglass --help"


def test_prompt_without_a_verb_is_shown_the_verb(tokenglass_: Command) -> None:
    assert 'tokenglass run "Why is the sky blue?"' in tokenglass_("Why is the sky blue?").error


def test_option_before_the_verb_is_shown_its_place(tokenglass_: Command) -> None:
    assert "tokenglass run --seed" in tokenglass_("--seed", "3").error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("models", "pull", "--help")])
def test_help_that_cannot_be_written_is_an_error(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        outcome = finish(child(*arguments, stdout=full))
    assert outcome.status == 1
    assert "cannot write the output: No space left on device" in outcome.err


@pytest.mark.parametrize("verb", ["run", "bench"])
def test_help_of_each_verb_fits_a_terminal(verb: str) -> None:
    outcome = finish(child(verb, "--help", env={"COLUMNS": "80"}))
    assert outcome.status == 0
    assert outcome.out.startswith(f"usage: tokenglass {verb} ")
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_run_imports_nothing_it_does_not_need(tiny_model_path: Path) -> None:
    program = (
        "import sys; from tokenglass.cli.main import main\n"
        f"main(['run', 'hello', '-m', {str(tiny_model_path)!r}, '--max-tokens', '2'])\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": SOURCE},
    )
    loaded = set(run.stdout.splitlines()[-1].split())
    assert {"numpy", "tokenizers"} <= loaded
    assert not {"rich", "typer", "huggingface_hub", "minijinja", "jinja2", "torch", "asyncio"} & loaded


def test_the_walk_from_command_to_text_can_be_read_in_one_sitting() -> None:
    lines = {name: len((ROOT / "tokenglass" / name).read_text().splitlines()) for name in WALK}
    assert sum(lines.values()) <= 900, lines


def test_the_walk_begins_as_the_architecture_page_says() -> None:
    source = (ROOT / "tokenglass/cli/run.py").read_text()
    assert "engine = options.load(path)" in source
    assert "for piece in engine.stream(request):" in source


@pytest.mark.parametrize(
    ("error", "said"),
    [(MemoryError(), "not enough memory"), (OSError(24, "Too many open files"), "Too many open files")],
)
def test_what_the_system_refuses_is_one_line(
    tokenglass_: Command, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def refuse(arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr("tokenglass.cli.main.dispatch", refuse)
    outcome = tokenglass_("run", "hello")
    assert outcome.status == 1
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1
