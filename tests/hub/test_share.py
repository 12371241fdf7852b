"""Our own small hub: what it serves, to whom it says no, and that both clients get a model from it."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hub.fake_hub import CONTENT, ENTRY, SHA256
from tokenglass.errors import DownloadError
from tokenglass.hub import pull
from tokenglass.hub.catalogue import Entry, ModelFile
from tokenglass.hub.share import MAX_CONNECTIONS, Share, byte_range
from tokenglass.hub.shared_files import shared_files

FOLDER = Entry(
    name="in-files",
    stored_as="in-files",
    files=(ModelFile("config.json"), ModelFile("vocab.txt")),
    hub="some/in-files",
)
PATH = "/own-er/Re.po-GGUF/resolve/main/Model.gguf"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The store that is shared: a catalogue model, a folder, a file of one's own, and what nobody may see."""
    store = tmp_path / "shared" / "models"
    (store / "in-files").mkdir(parents=True)
    (store / "hub-model.gguf").write_bytes(CONTENT)
    (store / "my-own.gguf").write_bytes(b"GGUF mine")
    (store / "in-files" / "config.json").write_bytes(b"{}")
    (store / "in-files" / "vocab.txt").write_bytes("天空".encode())
    (store / ".pulls").mkdir()
    (store / ".pulls" / "secret.gguf").write_bytes(b"secret")
    (store / "notes.txt").write_bytes(b"secret")
    (store.parent / "secret.gguf").write_bytes(b"secret")
    (store / "link.gguf").symlink_to(store.parent / "secret.gguf")
    (store / "in-files" / "link.txt").symlink_to(store.parent / "secret.gguf")
    return store


@contextmanager
def running(share: Share) -> Iterator[Share]:
    with share:
        thread = threading.Thread(target=share.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield share
        finally:
            share.shutdown()
            thread.join()


@pytest.fixture
def share(shared: Path) -> Iterator[Share]:
    with running(Share(shared, catalogue=[ENTRY, FOLDER])) as share:
        yield share


def ask(
    share: Share, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", share.port, timeout=10)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


# --- what it serves ---


def test_file_comes_with_its_checksum(share: Share) -> None:
    response, body = ask(share, PATH)
    assert response.status == 200
    assert body == CONTENT
    assert response.headers["ETag"] == f'"{SHA256}"'
    assert response.headers["Accept-Ranges"] == "bytes"
    assert len(response.headers["X-Repo-Commit"]) == 40
    head, nothing = ask(share, PATH, "HEAD")
    assert (head.status, head.headers["Content-Length"], nothing) == (200, str(len(CONTENT)), b"")


def test_stored_file_stands_under_its_own_name_too(share: Share) -> None:
    assert ask(share, "/local/my-own/resolve/main/my-own.gguf")[1] == b"GGUF mine"
    assert ask(share, "/local/hub-model/resolve/any-revision/hub-model.gguf")[1] == CONTENT
    assert ask(share, "/some/in-files/resolve/main/vocab.txt")[1].decode() == "天空"


def test_listing_has_every_repository_with_lengths(share: Share) -> None:
    listing = json.loads(ask(share, "/api/models")[1])
    sizes = {repo["id"]: {each["rfilename"]: each["size"] for each in repo["siblings"]} for repo in listing}
    assert sizes == {
        "local/hub-model": {"hub-model.gguf": len(CONTENT)},
        "local/in-files": {"config.json": 2, "vocab.txt": 6},
        "local/my-own": {"my-own.gguf": 9},
        "own-er/Re.po-GGUF": {"Model.gguf": len(CONTENT)},
        "some/in-files": {"config.json": 2, "vocab.txt": 6},
    }


@pytest.mark.parametrize(
    "path", ["/api/models/own-er/Re.po-GGUF", "/api/models/own-er/Re.po-GGUF/revision/main"]
)
def test_repository_is_described(path: str, share: Share) -> None:
    (sibling,) = json.loads(ask(share, path)[1])["siblings"]
    assert sibling["lfs"] == {"sha256": SHA256, "size": len(CONTENT)}
    tree = json.loads(ask(share, "/api/models/own-er/Re.po-GGUF/tree/main")[1])
    assert [(item["path"], item["lfs"]["oid"]) for item in tree] == [("Model.gguf", SHA256)]


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=0-0", 0, 1), ("bytes=1000-", 1000, len(CONTENT)), ("bytes=-5", -5, None)],
)
def test_range_is_served(asked: str, start: int, end: int | None, share: Share) -> None:
    response, body = ask(share, PATH, headers={"Range": asked})
    assert response.status == 206
    assert body == CONTENT[start:end]
    first = start % len(CONTENT)
    assert response.headers["Content-Range"] == f"bytes {first}-{first + len(body) - 1}/{len(CONTENT)}"


def test_range_behind_the_end_is_said(share: Share) -> None:
    response, _ = ask(share, PATH, headers={"Range": f"bytes={len(CONTENT)}-"})
    assert response.status == 416
    assert response.headers["Content-Range"] == f"bytes */{len(CONTENT)}"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, (0, 10)),
        ("bytes=2-4", (2, 5)),
        ("bytes=2-400", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=-0", None),
        ("bytes=10-", None),
        ("bytes=4-2", (0, 10)),
        ("bytes=0-1,3-4", (0, 10)),
        ("lines=1-2", (0, 10)),
        ("bytes=-", (0, 10)),
        ("bytes=" + "9" * 40 + "-", (0, 10)),
        ("bytes=٣-", (0, 10)),
    ],
)
def test_byte_range(header: str | None, expected: tuple[int, int] | None) -> None:
    assert byte_range(header, 10) == expected


def test_only_named_models_are_shared(shared: Path) -> None:
    files = shared_files(shared, only=["my-own.gguf"], catalogue=[ENTRY])
    assert [file.repository for file in files] == ["local/my-own"]


# --- what it refuses ---


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/..",
        "/../secret.gguf",
        "/local/my-own/resolve/main/../../../../secret.gguf",
        "/local/my-own/resolve/main/..%2f..%2fsecret.gguf",
        "/local/my-own/resolve/main/%2e%2e/secret.gguf",
        "/local/../resolve/main/secret.gguf",
        "/local/.pulls/resolve/main/secret.gguf",
        "/local/secret/resolve/main/secret.gguf",
        "/local/link/resolve/main/link.gguf",
        "/some/in-files/resolve/main/link.txt",
        "/local/notes/resolve/main/notes.txt",
        "/local/my-own/resolve/main/my-own.gguf/",
        "/local/my-own/resolve/main//my-own.gguf",
        "/local/my-own/resolve/main/my-own.gguf%00",
        "/local/my-own/resolve/main/MY-OWN.gguf",
        "/local/my-own/resolve/main/C:my-own.gguf",
        "/local/my-own/raw/main/my-own.gguf",
        "/api/models/local",
        "/api/models/local/nothing",
        "/api/models/../..",
        "//local/my-own/resolve/main/../my-own.gguf",
        "/" + "a/" * 20_000,
    ],
)
def test_hostile_path_gets_nothing(path: str, share: Share) -> None:
    response, body = ask(share, path)
    assert response.status in (404, 400)
    assert b"secret" not in body
    assert b"mine" not in body


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_nothing_can_be_changed(method: str, share: Share, shared: Path) -> None:
    before = {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    assert ask(share, PATH, method)[0].status in (400, 501)
    assert {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()} == before


def test_path_that_is_no_text_is_refused(share: Share) -> None:
    assert ask(share, "/%ff%fe")[0].status == 400


def test_request_with_a_body_is_refused_and_the_connection_closed(share: Share) -> None:
    response, _ = ask(share, "/api/models", headers={"Content-Length": "5"})
    assert response.status == 400


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET http://[bad/ HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" + bytes(200),
        b"GET " + b"x" * 70_000,
    ],
)
def test_nonsense_disturbs_nobody(words: bytes, share: Share) -> None:
    with socket.create_connection(("127.0.0.1", share.port), timeout=10) as peer:
        peer.sendall(words)
    assert ask(share, "/api/models")[0].status == 200


def test_too_many_connections_are_told_so_and_places_come_back(share: Share) -> None:
    peers = [
        socket.create_connection(("127.0.0.1", share.port), timeout=10) for _ in range(MAX_CONNECTIONS + 1)
    ]
    try:
        assert peers[-1].recv(12) == b"HTTP/1.1 503"
    finally:
        for peer in peers:
            peer.close()
    for _ in range(100):
        if ask_status(share) == 200:
            break
        threading.Event().wait(0.02)
    assert ask_status(share) == 200


def ask_status(share: Share) -> int:
    try:
        return ask(share, "/api/models")[0].status
    except (OSError, http.client.HTTPException):
        return 0


def test_idle_peer_is_dropped(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenglass.hub.share._Handler.timeout", 0.2)
    with socket.create_connection(("127.0.0.1", share.port), timeout=10) as peer:
        peer.sendall(b"GET /api")
        assert peer.recv(100) == b""


def test_it_listens_on_this_machine_alone_unless_asked(share: Share) -> None:
    assert share.server_address[0] == "127.0.0.1"


# --- clients ---


def test_our_own_pull_works_against_it(share: Share, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{share.port}")
    assert pull("hub-model", store=store, catalogue=[ENTRY]).read_bytes() == CONTENT
    folder = pull("in-files", store=store, catalogue=[FOLDER])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "config.json": b"{}",
        "vocab.txt": "天空".encode(),
    }
    assert pull("local/my-own/my-own.gguf", store=store).read_bytes() == b"GGUF mine"
    lacking = replace(ENTRY, stored_as="other.gguf", hub="own-er/other")
    with pytest.raises(DownloadError, match="HTTP 404"):
        pull("hub-model", store=store, catalogue=[lacking])


def test_file_that_changes_while_shared_is_seen_with_its_new_checksum(share: Share, shared: Path) -> None:
    (shared / "my-own.gguf").write_bytes(b"GGUF changed")
    response, body = ask(share, "/local/my-own/resolve/main/my-own.gguf")
    assert body == b"GGUF changed"
    assert response.headers["ETag"].strip('"') == hashlib.sha256(body).hexdigest()


def test_hugging_faces_own_client_works_against_it(share: Share, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    program = (
        "import sys; from huggingface_hub import HfApi, hf_hub_download\n"
        "path = hf_hub_download('own-er/Re.po-GGUF', 'Model.gguf')\n"
        "print(path, *HfApi().list_repo_files('some/in-files'), sep='\\n')"
    )
    environ = {
        "HF_ENDPOINT": f"http://127.0.0.1:{share.port}",
        "HF_HOME": str(tmp_path / "hf"),
        "NO_PROXY": "127.0.0.1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    path, *names = run.stdout.splitlines()
    assert Path(path).read_bytes() == CONTENT
    assert names == ["config.json", "vocab.txt"]
