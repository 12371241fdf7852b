"""HTTP as the hub needs it: redirects by our own rules, a token that goes to one host only, bounded answers.

urllib does the talking (and so honours the proxies and certificates of the system); it follows no redirect
by itself, as it would carry our token to whatever host the redirect names. Not `huggingface_hub`, though
`tokenizers` brings it: it does not compare a file with its checksum, and its interface changes with its
major version, of which `tokenizers` allows several.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import IO
from urllib.parse import urljoin, urlsplit

from tokenglass.errors import DownloadError

TIMEOUT_S = 20.0  # for a connection, and between two pieces of an answer
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
PROXY_REMEDY = "Check the network and the proxy, then run the command again: it goes on where it stopped"


class UnreachableError(DownloadError):
    """Nobody answered, or the answer broke off: worth another try, or another source."""


class Answer:
    """One answer to a request, its body not yet read. Use it in a `with` block."""

    def __init__(self, url: str, status: int, headers: Message, body: IO[bytes]) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self._body = body

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._body.close()

    @property
    def host(self) -> str:
        """Who answered, for messages."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def header(self, name: str) -> str:
        """The header's value, or nothing."""
        return str(self.headers.get(name) or "").strip()

    def read(self, num_bytes: int) -> bytes:
        """At most `num_bytes`, as soon as there are any; empty at the end. UnreachableError: it broke off."""
        reader = getattr(self._body, "read1", self._body.read)
        try:
            data: bytes = reader(num_bytes)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnreachableError(f"{self.host} broke off: {_reason(error)}", remedy=PROXY_REMEDY) from error
        return data

    def read_all(self, max_bytes: int) -> bytes:
        """The whole body. DownloadError: it is longer than `max_bytes`; UnreachableError: it broke off."""
        body = bytearray()
        while piece := self.read(1 << 16):
            body += piece
            if len(body) > max_bytes:
                raise DownloadError(f"{self.host} answers with more than {max_bytes >> 20} MB of words")
        declared = self.header("Content-Length")
        if declared.isdecimal() and len(body) < int(declared):
            reason = f"{len(body)} of {declared} bytes came"
            raise UnreachableError(f"{self.host} broke off: {reason}", remedy=PROXY_REMEDY)
        return bytes(body)


def ask(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
    leave_host: bool = True,
) -> Answer:
    """The answer to a request: 2xx, or 416; also a redirect to another host unless we may `leave_host`.

    `token` goes to the origin of `url` and nowhere else. UnreachableError, or DownloadError for a refusal.
    """
    home = origin(url)
    for _ in range(MAX_REDIRECTS + 1):
        request = urllib.request.Request(url, method=method, headers=dict(headers or {}))
        request.add_header("Accept-Encoding", "identity")
        request.add_header("User-Agent", "tokenglass")
        if token and origin(url) == home:
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        answer = _send(request)
        if answer.status not in REDIRECTS:
            return _accepted(answer)
        target = _target(answer)
        if not leave_host and (origin(target) != home or answer.header("X-Linked-ETag")):
            return answer
        answer._body.close()
        url = target
    raise DownloadError(f"{answer.host} redirects in circles")


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what a browser calls an origin."""
    parts = urlsplit(url)
    return (
        parts.scheme,
        (parts.hostname or "").lower(),
        parts.port or {"http": 80, "https": 443}.get(parts.scheme),
    )


def _send(request: urllib.request.Request) -> Answer:
    opener = urllib.request.OpenerDirector()  # http and https alone, and a redirect comes back to us
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    host = urlsplit(request.full_url).netloc.rpartition("@")[2]
    try:
        response = opener.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        return Answer(request.full_url, error.code, error.headers, error)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnreachableError(f"{host} cannot be reached: {_reason(error)}", remedy=PROXY_REMEDY) from error
    assert response is not None
    return Answer(request.full_url, response.status, response.headers, response)


def _target(answer: Answer) -> str:
    """Where a redirect leads. DownloadError: nowhere, to no web address, or from https back to http."""
    try:
        target = urljoin(answer.url, answer.header("Location"))
        scheme, host, _ = origin(target)
    except ValueError:
        scheme, host = "", ""
    if not answer.header("Location") or scheme not in ("http", "https") or not host:
        raise DownloadError(f"{answer.host} redirects to an address that is none")
    if answer.url.startswith("https:") and scheme != "https":
        raise DownloadError(f"{answer.host} redirects from https to http, and that is not followed")
    return target


def _accepted(answer: Answer) -> Answer:
    status = answer.status
    if 200 <= status < 300 or status == 416:
        return answer
    answer._body.close()
    if status in (401, 403):
        raise DownloadError(
            f"{answer.host} does not give this to us (HTTP {status})",
            remedy="If the model asks you to accept its licence: do so on its page, then set HF_TOKEN",
        )
    if status == 404:
        raise DownloadError(f"{answer.host} has no {urlsplit(answer.url).path} (HTTP 404)")
    if status == 429 or status >= 500:
        raise UnreachableError(f"{answer.host} is busy or broken (HTTP {status})", remedy="Try again later")
    raise DownloadError(f"{answer.host} answers with HTTP {status}")


def _reason(error: Exception) -> str:
    """The cause inside urllib's wrapping, on one line."""
    inner = getattr(error, "reason", None) or error
    if isinstance(inner, TimeoutError):
        return f"no answer in {TIMEOUT_S:.0f} s"
    words = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(str(words).split())[:200]
