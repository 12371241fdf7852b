"""Redirects and the token: where a request may go, and what it carries there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.fake_hub import CONTENT, ENTRY, FakeHub, serving
from tokenglass.errors import DownloadError, ParameterError
from tokenglass.hub import pull
from tokenglass.hub.sources import sources_for
from tokenglass.hub.web import UnreachableError, ask, origin

TOKEN = "hf_secret"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


@pytest.fixture
def elsewhere() -> Iterator[FakeHub]:
    """Another origin: the same machine, another port."""
    with serving(FakeHub()) as other:
        yield other


def tokens(hub: FakeHub) -> set[str | None]:
    return {headers.get("Authorization") for _, _, headers in hub.requests}


def test_token_goes_to_the_endpoint(hub: FakeHub, store: Path) -> None:
    pull("hub-model", store=store, catalogue=[ENTRY])
    assert tokens(hub) == {f"Bearer {TOKEN}"}


def test_token_stays_behind_when_the_body_is_elsewhere(hub: FakeHub, elsewhere: FakeHub, store: Path) -> None:
    hub.get_status, hub.get_headers = 302, {"Location": f"{elsewhere.url}/blob?signature=1"}
    path = pull("hub-model", store=store, catalogue=[ENTRY])
    assert path.read_bytes() == CONTENT
    assert tokens(hub) == {f"Bearer {TOKEN}"}
    assert tokens(elsewhere) == {None}


def test_other_host_cannot_vouch_for_the_file(hub: FakeHub, elsewhere: FakeHub, store: Path) -> None:
    hub.head_status, hub.declared = 302, {"Location": f"{elsewhere.url}/x"}
    with pytest.raises(DownloadError, match="declares no usable length"):
        pull("hub-model", store=store, catalogue=[ENTRY])
    assert elsewhere.requests == []


def test_description_beside_a_redirect_counts(hub: FakeHub, elsewhere: FakeHub, store: Path) -> None:
    hub.head_status = 302
    hub.declared["Location"] = f"{elsewhere.url}/blob"
    assert pull("hub-model", store=store, catalogue=[ENTRY]).read_bytes() == CONTENT
    assert elsewhere.requests == []


def test_elsewhere_with_another_file_is_found_out(hub: FakeHub, elsewhere: FakeHub, store: Path) -> None:
    hub.get_status, hub.get_headers = 302, {"Location": f"{elsewhere.url}/blob"}
    elsewhere.body = CONTENT[::-1]
    with pytest.raises(DownloadError, match="is not the file it declares"):
        pull("hub-model", store=store, catalogue=[ENTRY])
    assert not list(store.glob("*.gguf"))


@pytest.mark.parametrize(
    "location", ["", "file:///etc/passwd", "ftp://x/y", "data:,x", "javascript:1", "http://[bad/"]
)
def test_redirect_to_no_web_address_is_refused(location: str, hub: FakeHub) -> None:
    hub.get_status, hub.get_headers = 302, {"Location": location}
    with pytest.raises(DownloadError, match="redirects to an address that is none"):
        ask(f"{hub.url}/resolve/x")


def test_redirects_in_circles_end(hub: FakeHub) -> None:
    hub.get_status, hub.get_headers = 302, {"Location": "/resolve/again"}
    with pytest.raises(DownloadError, match="redirects in circles"):
        ask(f"{hub.url}/resolve/x")
    assert len(hub.requests) == 6


def test_answer_of_many_words_is_bounded(hub: FakeHub) -> None:
    with ask(f"{hub.url}/resolve/x") as answer, pytest.raises(DownloadError, match="more than 1 MB"):
        answer.read_all(1 << 20)


def test_origin_is_scheme_host_and_port() -> None:
    assert origin("HTTPS://Hub.Example/x") == ("https", "hub.example", 443)
    assert origin("https://hub.example:444/x") != origin("https://hub.example/x")
    assert origin("http://hub.example:443/x") != origin("https://hub.example/x")
    assert origin("https://hub.example@evil.example/x")[1] == "evil.example"


def test_silent_host_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("tokenglass.hub.web.TIMEOUT_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(UnreachableError, match="no answer in 0 s"),
    ):
        ask(f"http://127.0.0.1:{silent.getsockname()[1]}/x")


# --- settings ---


def test_endpoint_of_ones_own_is_asked_first_and_else_the_wheel() -> None:
    from tokenglass.hub.catalogue import CATALOGUE

    default = CATALOGUE[0]
    assert [source.name for source in sources_for(default, environ={})] == ["wheel", "hub"]
    environ = {"HF_ENDPOINT": "http://10.0.0.5:8790/"}
    first = sources_for(default, environ=environ)[0]
    assert (first.name, first.url) == ("hub", "http://10.0.0.5:8790")


@pytest.mark.parametrize(
    ("endpoint", "is_sent"),
    [
        ("", True),
        ("https://hub.example", True),
        ("http://localhost:1", True),
        ("http://10.0.0.5:8790", False),
    ],
)
def test_token_is_not_sent_where_others_can_read_it(endpoint: str, is_sent: bool) -> None:
    (hub,) = sources_for(ENTRY, environ={"HF_ENDPOINT": endpoint, "HF_TOKEN": f" {TOKEN}\n"})
    assert hub.token == (TOKEN if is_sent else None)


def test_mirror_gets_no_token() -> None:
    (mirror,) = sources_for(ENTRY, "mirror", environ={"HF_TOKEN": TOKEN})
    assert mirror.token is None


@pytest.mark.parametrize(
    "endpoint",
    [
        "hub.example",
        "ftp://x",
        "http://",
        "http://a b",
        "http://a\n",
        "http://x:99999",
        "http://x/?q",
        "http://ü",
    ],
)
def test_endpoint_that_is_no_address_is_refused_by_name(endpoint: str) -> None:
    with pytest.raises(ParameterError, match="HF_ENDPOINT is no web address"):
        sources_for(ENTRY, environ={"HF_ENDPOINT": endpoint + " x" if endpoint.endswith("\n") else endpoint})


def test_password_in_the_endpoint_is_refused_without_repeating_it() -> None:
    with pytest.raises(ParameterError, match="HF_TOKEN instead") as caught:
        sources_for(ENTRY, environ={"HF_ENDPOINT": "https://me:pass@hub.example"})
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("token", ["two words", "a\r\nX-Evil: 1", "schlüssel"])
def test_token_with_strange_characters_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ParameterError, match="HF_TOKEN is not a token") as caught:
        sources_for(ENTRY, environ={"HF_TOKEN": token})
    assert token not in str(caught.value)
