"""The local store as a small hub: whoever sets HF_ENDPOINT to this server can pull what is stored here.

    GET, HEAD /{owner}/{name}/resolve/{revision}/{file}   a file, with ranges; ETag is its sha256
    GET       /api/models                                 every repository
    GET       /api/models/{owner}/{name}[/revision/{r}]   one repository with its files
    GET       /api/models/{owner}/{name}/tree/{revision}  its files, with lengths

Read-only. A path in a request is never joined to a folder: it is a key in a table of what may be served
(`shared_files.py`).
Paths and headers as Hugging Face's client uses them (`huggingface_hub`, Apache-2.0); a test runs that client.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tokenglass.hub.catalogue import CATALOGUE, Entry
from tokenglass.hub.shared_files import Checksums, SharedFile, commit_of, shared_files, with_owner

MAX_CONNECTIONS = 32
IDLE_S = 30.0  # without a byte in either direction
CHUNK_BYTES = 1 << 18


class Share(ThreadingHTTPServer):
    """The server. `serve_forever()` serves until `shutdown()`; the table is made anew for each request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        store: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        only: Collection[str] = (),
        catalogue: Sequence[Entry] = CATALOGUE,
        on_sent: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        self.store, self.only, self.catalogue = store, frozenset(only), catalogue
        self.on_sent = on_sent  # called with the peer's address and the file's name
        self.checksums = Checksums()
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    @property
    def port(self) -> int:
        """The port it listens at, also when 0 was asked for."""
        return int(self.server_address[1])

    def files(self) -> list[SharedFile]:
        """What is offered now."""
        return shared_files(self.store, only=self.only, catalogue=self.catalogue)

    def server_bind(self) -> None:  # HTTPServer's own asks the name service who we are, which may take long
        if sys.platform != "win32":  # there it would let two servers share one port
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            request.settimeout(1)
            with contextlib.suppress(OSError):
                request.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system gives no further thread
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a peer that went away or talks nonsense concerns nobody else


class _Refusal(Exception):  # noqa: N818 -- it is an answer, not a fault
    def __init__(self, status: HTTPStatus, why: str, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.why = why
        self.headers = headers or {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tokenglass"
    sys_version = ""
    timeout = IDLE_S
    server: Share

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        try:
            self._route()
        except _Refusal as refusal:
            body = json.dumps({"error": refusal.why}).encode()
            headers = {"Content-Type": "application/json", "X-Error-Message": refusal.why, **refusal.headers}
            self._head(refusal.status, len(body), headers)
            if self.command != "HEAD":
                self.wfile.write(body)

    def _route(self) -> None:
        if self.headers.get("Content-Length", "0") != "0" or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise _Refusal(HTTPStatus.BAD_REQUEST, "a request for a file has no body")
        try:
            path = unquote(urlsplit(self.path).path, errors="strict")
        except ValueError:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "this is no path in UTF-8") from None
        files = self.server.files()
        match with_owner(path.split("/"), files):
            case ["", "api", "models"]:
                names = sorted({file.repository for file in files})
                self._send_json([self._repository(name, files) for name in names])
            case ["", "api", "models", owner, name] | ["", "api", "models", owner, name, "revision", _]:
                mine = _of_repository(files, f"{owner}/{name}")
                self._send_json(self._repository(f"{owner}/{name}", mine, checksums=True))
            case ["", "api", "models", owner, name, "tree", _]:
                self._send_json([self._tree_item(file) for file in _of_repository(files, f"{owner}/{name}")])
            case ["", owner, name, "resolve", _, file_name]:
                mine = _of_repository(files, f"{owner}/{name}")
                found = next((file for file in mine if file.name == file_name), None)
                if found is None:
                    raise _Refusal(
                        HTTPStatus.NOT_FOUND, "there is no such file", {"X-Error-Code": "EntryNotFound"}
                    )
                self._send_file(found, commit_of(mine))
            case _:
                raise _Refusal(HTTPStatus.NOT_FOUND, "there is nothing under this path")

    # --- descriptions ---

    def _repository(
        self, name: str, files: Sequence[SharedFile], *, checksums: bool = False
    ) -> dict[str, Any]:
        """As a hub describes a repository; with checksums when they are worth the reading of the files."""
        mine = [file for file in files if file.repository == name]
        siblings: list[dict[str, Any]] = []
        for file in mine:
            sibling: dict[str, Any] = {"rfilename": file.name, "size": file.num_bytes}
            if checksums:
                sibling["lfs"] = {"sha256": self.server.checksums.of(file.path), "size": file.num_bytes}
            siblings.append(sibling)
        return {"id": name, "modelId": name, "sha": commit_of(mine), "private": False, "siblings": siblings}

    def _tree_item(self, file: SharedFile) -> dict[str, Any]:
        sha256 = self.server.checksums.of(file.path)
        lfs = {"oid": sha256, "size": file.num_bytes, "pointerSize": 0}
        return {"type": "file", "path": file.name, "size": file.num_bytes, "oid": sha256[:40], "lfs": lfs}

    # --- bodies ---

    def _send_json(self, value: object) -> None:
        body = json.dumps(value, ensure_ascii=False).encode()
        self._head(HTTPStatus.OK, len(body), {"Content-Type": "application/json; charset=utf-8"})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_file(self, file: SharedFile, commit: str) -> None:
        sha256 = self.server.checksums.of(file.path)
        headers = {
            "Content-Type": "application/octet-stream",
            "ETag": f'"{sha256}"',
            "X-Linked-ETag": f'"{sha256}"',
            "X-Linked-Size": str(file.num_bytes),
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
        }
        span = byte_range(self.headers.get("Range"), file.num_bytes)
        if span is None:
            headers = {"Content-Range": f"bytes */{file.num_bytes}"}
            raise _Refusal(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "the file has no such bytes", headers)
        start, end = span
        status = HTTPStatus.OK
        if end - start < file.num_bytes:
            status = HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.num_bytes}"
        with file.path.open("rb") as source:
            self._head(status, end - start, headers)
            if self.command == "HEAD":
                return
            source.seek(start)
            left = end - start
            while left and (piece := source.read(min(left, CHUNK_BYTES))):
                self.wfile.write(piece)
                left -= len(piece)
        if left:  # the file became shorter: the peer must see that something is missing
            self.close_connection = True
        else:
            self.server.on_sent(str(self.client_address[0]), file.name)

    def _head(self, status: HTTPStatus, num_bytes: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(num_bytes)}.items():
            self.send_header(name, value)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()


def byte_range(header: str | None, num_bytes: int) -> tuple[int, int] | None:
    """Start and end (not included) of what a Range header asks for; None when the file has no such bytes.

    `byte_range("bytes=5-", 10) == (5, 10)`. Several ranges, and words that are none, give the whole file.
    """
    match = re.fullmatch(r"bytes=([0-9]{0,18})-([0-9]{0,18})", (header or "").strip())
    if match is None or match.groups() == ("", ""):
        return 0, num_bytes
    first, last = match.groups()
    if first == "":  # the last n bytes
        return (max(num_bytes - int(last), 0), num_bytes) if int(last) and num_bytes else None
    start, end = int(first), min(int(last) + 1, num_bytes) if last else num_bytes
    if last and int(last) < start:
        return 0, num_bytes
    return (start, end) if start < num_bytes else None


def _of_repository(files: Sequence[SharedFile], name: str) -> list[SharedFile]:
    mine = [file for file in files if file.repository == name]
    if not mine:
        raise _Refusal(HTTPStatus.NOT_FOUND, "there is no such repository", {"X-Error-Code": "RepoNotFound"})
    return mine


def own_address() -> str:
    """The address under which the room reaches this machine, as far as it can be told; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address (RFC 5737): only the route is looked up
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
