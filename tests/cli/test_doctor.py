"""`tokenglass doctor`: what it finds on made-up machines, and what it makes of it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tokenglass.cli.columns import width
from tokenglass.cli.doctor import report
from tokenglass.cli.doctor_advice import ROOM_BYTES, advice, problems
from tokenglass.cli.doctor_facts import EXTRAS, REQUIRED, compiler, environment, gather, machine, store
from tokenglass.hub import DEFAULT_MODEL

ROOT = Path(__file__).parents[2]


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, Any]:
    """A machine on which nothing is wrong."""
    found = gather({"TOKENGLASS_HOME": str(tmp_path)})
    found["machine"] |= {"logical": 4, "cores": 4, "quota": None, "num_threads": 4, "huge_pages": "madvise"}
    found["machine"] |= {"memory_bytes": 8 * 10**9, "free_bytes": 4 * 10**9, "limit_bytes": None}
    found["kernels"] = {"isa": "avx2", "isas": ["avx2", "plain"], "error": None}
    found["packages"] = dict.fromkeys(REQUIRED, "1.0")
    found["store"] |= {"default_path": "model.gguf", "is_writable": True, "free_bytes": 10**10}
    found["environment"] = {}
    return found


def test_it_says_what_it_found_and_that_it_works(
    tokenglass_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path))
    for name in ("TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    outcome = tokenglass_("doctor")
    assert outcome.status == 0
    assert outcome.out.splitlines()[-1].strip() == "ready to run"
    assert f"TOKENGLASS_HOME={tmp_path}" in outcome.out
    record = tokenglass_("doctor", "--json").json
    assert record["problems"] == []
    assert record["machine"]["num_threads"] >= 1


def test_status_1_where_something_prevents_a_run(
    tokenglass_: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path))
    monkeypatch.setenv("TOKENGLASS_OFFLINE", "1")
    outcome = tokenglass_("doctor")
    assert outcome.status == 1
    assert "PROBLEM           the default model is not here and downloads are switched off" in outcome.out
    assert outcome.out.splitlines()[-1].strip() == "it cannot run like this"


def test_lines_fit_eighty_columns(facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.cli.language._chosen", "zh")
    facts["store"]["path"] = "models"
    facts["machine"] |= {"quota": 1.5, "num_threads": 1}
    facts |= {"problems": [], "advice": advice(facts)}
    lines = report(facts).splitlines()
    assert any(line.startswith("建议") and "配额" in line for line in lines)
    assert [line for line in lines if width(line) > 80] == []


def test_nothing_is_wrong_with_a_good_machine(facts: dict[str, Any]) -> None:
    assert problems(facts) == []
    assert [text for text in advice(facts) if "compiler" not in text] == []


def break_kernels(facts: dict[str, Any]) -> None:
    facts["kernels"] = {"isa": None, "isas": [], "error": "the extension cannot be loaded: no such file"}


def fill_memory(facts: dict[str, Any]) -> None:
    facts["machine"]["limit_bytes"] = ROOM_BYTES - 1


def lose_package(facts: dict[str, Any]) -> None:
    facts["packages"]["minijinja"] = None


def lose_model_and_pip(facts: dict[str, Any]) -> None:
    facts["packages"]["pip"] = facts["store"]["default_path"] = None


def lock_store(facts: dict[str, Any]) -> None:
    facts["store"] |= {"default_path": None, "is_writable": False}


def fill_disk(facts: dict[str, Any]) -> None:
    facts["store"] |= {"default_path": None, "free_bytes": 10**6}


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (break_kernels, "the extension cannot be loaded"),
        (fill_memory, "only 249 MB of memory are free"),
        (lose_package, "not installed: minijinja"),
        (lose_model_and_pip, "ensurepip"),
        (lock_store, "cannot be written"),
        (fill_disk, "is full"),
    ],
)
def test_each_obstacle_is_named(
    facts: dict[str, Any], harm: Callable[[dict[str, Any]], None], words: str
) -> None:
    harm(facts)
    assert len(problems(facts)) == 1
    assert words in problems(facts)[0]


@pytest.mark.parametrize(
    ("part", "values", "words"),
    [
        ("machine", {"quota": 1.5, "num_threads": 1}, "the quota is 1.5 processors: 2 busy threads"),
        ("machine", {"logical": 8}, "8 processors are 4 cores"),
        ("machine", {"huge_pages": "never"}, "huge pages are off"),
        ("kernels", {"isa": "plain"}, "TOKENGLASS_ISA=plain is slower than avx2"),
        ("kernels", {"isa": "plain", "isas": ["plain"]}, "plain C++ runs"),
        ("store", {"default_path": None}, f"tokenglass models pull {DEFAULT_MODEL}"),
        ("environment", {"TOKENGLASS_HOM": "x"}, "no variable of ours. Did you mean TOKENGLASS_HOME?"),
        ("environment", {"TOKENGLASS_XYZZY": "x"}, "TOKENGLASS_XYZZY is no variable of ours"),
    ],
)  # fmt: skip
def test_each_piece_of_advice(facts: dict[str, Any], part: str, values: dict[str, Any], words: str) -> None:
    facts["compiler"] = "c++"
    facts[part] |= values
    (text,) = advice(facts)
    assert words in text
    assert problems(facts) == []


def test_machine_is_read_from_the_system_files(tmp_path: Path) -> None:
    for name, text in {
        "proc/meminfo": "MemTotal:       2000000 kB\nMemFree: 5 kB\nMemAvailable:   1000000 kB\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/memory.max": "1000000000\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = machine(tmp_path)
    assert (found["memory_bytes"], found["free_bytes"]) == (2_048_000_000, 1_024_000_000)
    assert (found["quota"], found["num_threads"], found["limit_bytes"]) == (0.5, 1, 10**9)
    assert found["huge_pages"] == "never"
    empty = machine(tmp_path / "nothing")
    assert empty["memory_bytes"] is empty["quota"] is empty["huge_pages"] is None


def test_neither_token_nor_password_is_shown() -> None:
    found = environment(
        {
            "HF_TOKEN": "hf_secret",
            "https_proxy": "http://me:secret@proxy:3128/",
            "HTTP_PROXY": "me:secret@other:1",
            "PIP_INDEX_URL": "https://u:secret@index.example.org/simple",
            "HF_ENDPOINT": "https://hub.example.org",
            "TOKENGLASS_LANG": "zh",
            "PATH": "/bin",
        }
    )
    assert found == {
        "TOKENGLASS_LANG": "zh",
        "HF_TOKEN": "…",
        "HTTPS_PROXY": "proxy:3128",
        "HTTP_PROXY": "other:1",
        "PIP_INDEX_URL": "index.example.org",
        "HF_ENDPOINT": "hub.example.org",
    }
    assert "secret" not in json.dumps(found)


def test_compiler_is_the_one_of_the_environment(tmp_path: Path) -> None:
    assert compiler({"PATH": str(tmp_path)}) is None
    fake = tmp_path / "my-c++"
    fake.write_text("#!/bin/sh\necho 'my compiler 1.2'\necho more\n")
    fake.chmod(0o755)
    assert compiler({"PATH": str(tmp_path), "CXX": "my-c++"}) == "my compiler 1.2"
    fake.write_text("#!/bin/sh\nexit 1\n")
    assert compiler({"PATH": str(tmp_path), "CXX": "my-c++"}) is None


def test_store_that_is_not_there_yet_is_looked_at_where_it_will_be(tmp_path: Path) -> None:
    found = store({"TOKENGLASS_HOME": str(tmp_path / "a" / "b")})
    assert found["path"] == str(tmp_path / "a" / "b" / "models")
    assert found["is_writable"]
    assert (found["num_bytes"], found["default_path"]) == (0, None)
    (tmp_path / "file").write_text("in the way")
    assert not store({"TOKENGLASS_HOME": str(tmp_path / "file")})["is_writable"]
    assert not (tmp_path / "a").exists()


def test_packages_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements: list[str]) -> list[str]:
        return [requirement.split(">")[0].split("=")[0] for requirement in requirements]

    assert names(project["dependencies"]) == list(REQUIRED)
    extras = {extra: names(packages) for extra, packages in project["optional-dependencies"].items()}
    assert extras == {extra: list(packages) for extra, packages in EXTRAS.items()}
