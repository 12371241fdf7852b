"""A package index of one: a small wheel with a model in it, in a folder or behind a server on this machine.

The server stops half-way through the first download until it is told to go on, which puts a pull exactly
where a test wants it, without sleeping.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from tokenglass.hub.catalogue import Entry, ModelFile, Wheel

WHEEL_NAME = "tiny_model-1.0-py3-none-any.whl"
CONTENT = b"GGUF" + Random(0).randbytes(1_500_000)


def write_wheel(
    folder: Path, members: Iterable[tuple[str, bytes]] = (("tiny_model/tiny.gguf", CONTENT),)
) -> Path:
    """A wheel that pip accepts, with these members beside its metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / WHEEL_NAME
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def entry_for(wheel: Path, content: bytes = CONTENT, *, wheel_sha256: str | None = None) -> Entry:
    """A catalogue entry for `content` inside this wheel, true unless a false checksum is asked for."""
    data = wheel.read_bytes()
    return Entry(
        name="tiny-model",
        aliases=("tiny",),
        stored_as="tiny-model-f32.gguf",
        files=(ModelFile("tiny.gguf", len(content), hashlib.sha256(content).hexdigest()),),
        licence="Apache-2.0",
        wheel=Wheel("tiny-model", "1.0", len(data), wheel_sha256 or hashlib.sha256(data).hexdigest()),
    )


class Index:
    """The served index. The first download sets `half_sent` and waits for `go_on`; later ones do not wait."""

    def __init__(self, wheel: Path) -> None:
        self.wheel = wheel
        self.num_downloads = 0
        self.half_sent = threading.Event()
        self.go_on = threading.Event()
        self.url = ""


@contextmanager
def served(wheel: Path) -> Iterator[Index]:
    """Serves the wheel on a free port of this machine."""
    index = Index(wheel)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(WHEEL_NAME):
                self.send_wheel(index.wheel.read_bytes())
            else:
                self.send(f'<a href="/{WHEEL_NAME}">{WHEEL_NAME}</a>'.encode(), "text/html")

        def send_wheel(self, data: bytes) -> None:
            index.num_downloads += 1
            self.send(data[: len(data) // 2], "application/zip", length=len(data))
            if index.num_downloads == 1:
                index.half_sent.set()
                index.go_on.wait(timeout=60)
            self.wfile.write(data[len(data) // 2 :])

        def send(self, data: bytes, kind: str, *, length: int | None = None) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length or len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that was killed half-way is what these tests are about

    with Server(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield index
        finally:
            index.go_on.set()
            server.shutdown()
            thread.join()
