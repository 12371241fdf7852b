"""A hub that lies, breaks off or sends away, on this machine; honest where a test tells it nothing else.

What it was asked stands in `requests`. The honest hub of the other tests is our own (`hub/share.py`).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

from tokenglass.hub.catalogue import Entry, ModelFile

CONTENT = b"GGUF" + Random(1).randbytes(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
ENTRY = Entry(
    name="hub-model", stored_as="hub-model.gguf", files=(ModelFile("Model.gguf"),), hub="own-er/Re.po-GGUF"
)
PATH = "/own-er/Re.po-GGUF/resolve/main/Model.gguf"


@dataclass
class FakeHub:
    """How it behaves. `cuts[i]`: the i-th GET breaks off after so many bytes; None and later ones do not."""

    declared: dict[str, str] = field(
        default_factory=lambda: {"X-Linked-Size": str(len(CONTENT)), "X-Linked-ETag": f'"{SHA256}"'}
    )
    head_status: int = 200
    head_type: str = "application/octet-stream"
    get_status: int = 200
    get_headers: dict[str, str] = field(default_factory=dict)
    body: bytes = CONTENT
    cuts: list[int | None] = field(default_factory=list)
    has_ranges: bool = True
    content_range: str | None = None
    is_endless: bool = False
    listing: bytes = b""
    pause: threading.Event | None = None  # the first GET waits for it after a cut's bytes, then goes on
    half_sent: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    @property
    def gets(self) -> list[dict[str, str]]:
        """The headers of every GET for the file."""
        return [headers for method, path, headers in self.requests if method == "GET" and "/resolve/" in path]


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serves on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.note()
            self.send_response(hub.head_status)
            for name, value in hub.declared.items():
                self.send_header(name, value)
            self.send_header("Content-Type", hub.head_type)
            self.end_headers()

        def do_GET(self) -> None:
            self.note()
            if "/repo/files" in self.path:
                return self.send(200, {"Content-Length": str(len(hub.listing))}, hub.listing)
            start = 0
            asked = self.headers.get("Range", "")
            headers = {"Content-Type": "application/octet-stream"}
            status = hub.get_status
            if asked and hub.has_ranges:
                start, status = int(asked.removeprefix("bytes=").rstrip("-")), 206
                total = len(hub.body)
                headers["Content-Range"] = hub.content_range or f"bytes {start}-{total - 1}/{total}"
            body = hub.body[start:]
            if not hub.is_endless:
                headers["Content-Length"] = str(len(body))
            cut = hub.cuts.pop(0) if hub.cuts else None
            self.send(status, headers | hub.get_headers, body[:cut])
            if hub.pause is not None and cut is not None:
                hub.half_sent.set()
                hub.pause.wait(timeout=60)
                self.wfile.write(body[cut:])
            while hub.is_endless:
                self.wfile.write(bytes(1 << 16))
            return None

        def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def note(self) -> None:
            hub.requests.append((self.command, self.path, dict(self.headers)))

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            with suppress(AttributeError):
                hub.pause.set()  # type: ignore[union-attr]
            server.shutdown()
            thread.join()
