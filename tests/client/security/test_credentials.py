"""Tests of OAUTHBEARER tokens in clients: callbacks, an OIDC provider, caching, refresh, and failures."""

from __future__ import annotations

import asyncio
import base64
import http.server
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.client.security.credentials import TokenSource
from penstock.client.security.options import parse_security
from penstock.client.security.settings import OAuthSettings
from penstock.client.security.unsecured_logins import UnsecuredLogin
from penstock.errors import AuthenticationError, NetworkError, PenstockError
from penstock.security.oauth import Token
from penstock.security.secrets import Secret

CANARY = "canary-9d2e"


class Clock:
    """A stand-in for the module `time`, whose time a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("penstock.client.security.credentials.time", clock)
    return clock


def source(provider: Callable[..., Any], **more: Any) -> TokenSource:
    return TokenSource(OAuthSettings(provider=provider, **more))


def test_a_token_is_kept_until_most_of_its_life_is_over(clock: Clock) -> None:
    calls = []

    def provider() -> tuple[str, float]:
        calls.append(clock.now)
        return f"t{len(calls)}", clock.now + 100

    async def play() -> None:
        tokens = source(provider)
        both = await asyncio.gather(tokens.token(), tokens.token())
        assert both[0] == both[1]
        clock.now += 79
        assert (await tokens.token()).text == Secret("t1")
        clock.now += 2
        assert (await tokens.token()).text == Secret("t2")

    asyncio.run(play())
    assert len(calls) == 2


def test_a_token_that_a_broker_thinks_shorter_lived_is_replaced_early(clock: Clock) -> None:
    calls = []

    def provider() -> tuple[str, float]:
        calls.append(clock.now)
        return f"t{len(calls)}", clock.now + 100

    async def play() -> None:
        tokens = source(provider)
        await tokens.token()
        clock.now += 60  # the broker, whose clock is ahead, has granted a session of 65 s
        assert (await tokens.token(30)).text == Secret("t1")
        assert (await tokens.token(65)).text == Secret("t2")
        assert (await tokens.token(65)).text == Secret("t2")

    asyncio.run(play())


def test_the_old_token_serves_while_the_provider_fails_and_it_is_valid(clock: Clock) -> None:
    answers: list[Any] = [("old", clock.now + 100)]

    def provider() -> Any:
        if answers:
            return answers.pop()
        raise RuntimeError("provider is down")

    async def play() -> None:
        tokens = source(provider)
        await tokens.token()
        clock.now += 90
        assert (await tokens.token()).text == Secret("old")
        clock.now += 20
        with pytest.raises(AuthenticationError, match="callback failed: RuntimeError: provider is down"):
            await tokens.token()

    asyncio.run(play())


def test_callbacks_that_block_or_end_a_thread_harm_no_other(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.client.security.credentials.PROVIDER_TIMEOUT_S", 0.05)
    go_on = threading.Event()

    def end() -> str:
        raise SystemExit(1)

    async def play() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        try:
            for _ in range(2):
                with pytest.raises(NetworkError, match="callback took longer"):
                    await source(go_on.wait).token()
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 30) == "free"
        finally:
            go_on.set()
        with pytest.raises(AuthenticationError, match=r"callback failed: .*SystemExit: 1"):
            await source(end).token()

    asyncio.run(play())


def test_callbacks_of_every_shape(clock: Clock) -> None:
    async def asynchronous() -> str:
        return "async"

    def of_librdkafka(config: str) -> tuple[str, float, str, dict[str, str]]:
        return f"config-{config}", clock.now + 60, "ann", {"k": "v"}

    class OfKafkaPython:
        def token(self) -> str:
            return "object"

    async def text(provider: object) -> Token:
        settings = parse_security(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.provider": provider,
                "sasl.oauthbearer.config": "me",
                "sasl.oauthbearer.extensions": "a=b,c=d",
            }
        )
        assert settings is not None
        return await TokenSource(settings.oauth).token()

    async def play() -> None:
        assert (await text(asynchronous)).text == Secret("async")
        token = await text(of_librdkafka)
        assert token.text == Secret("config-me")
        assert token.extensions == {"a": "b", "c": "d", "k": "v"}
        assert (await text(OfKafkaPython())).text == Secret("object")
        assert (await text(lambda: asynchronous())).text == Secret("async")

    asyncio.run(play())


def test_a_token_that_has_ended_is_not_sent(clock: Clock) -> None:
    async def play() -> None:
        with pytest.raises(AuthenticationError, match="ended 5 s ago by this machine's clock"):
            await source(lambda: ("x", clock.now - 5)).token()

    asyncio.run(play())


def test_an_unsecured_token_is_made_where_the_option_says_so() -> None:
    async def play() -> None:
        settings = OAuthSettings(unsecured=UnsecuredLogin({"sub": "ann"}, {}), extensions={"a": "b"})
        token = await TokenSource(settings).token()
        assert token.text.reveal().endswith(".")
        assert token.extensions == {"a": "b"}

    asyncio.run(play())


class Provider(http.server.BaseHTTPRequestHandler):
    """A token endpoint that gives the prepared `answers` and records the requests in `asked`."""

    answers: list[tuple[int, bytes]] = []  # noqa: RUF012
    asked: list[tuple[str, str]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append((self.headers["Authorization"], body))
        status, data = self.answers.pop(0)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.answers, Provider.asked = [], []
    server = http.server.HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    thread.join()
    server.server_close()


def fetched(url: str, **more: Any) -> Token:
    settings = OAuthSettings(token_endpoint=url, client_id="me", client_secret=Secret(CANARY), **more)
    return asyncio.run(TokenSource(settings).token())


def test_client_credentials(provider: str) -> None:
    Provider.answers = [(200, json.dumps({"access_token": "opaque", "expires_in": 60}).encode())]
    token = fetched(provider, scope="a b")
    assert token.text == Secret("opaque")
    assert token.expires_at_s is not None
    ((authorization, body),) = Provider.asked
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"me:{CANARY}"
    assert urllib.parse.parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["a b"]}


def test_a_provider_is_asked_again_when_most_of_a_tokens_life_is_over(
    provider: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.client.security.oidc.time", clock)
    Provider.answers = [
        (200, json.dumps({"access_token": "one", "expires_in": 100}).encode()),
        (200, json.dumps({"access_token": "two", "expires_in": 100}).encode()),
        (503, b""),
        (401, b'{"error":"invalid_client"}'),
        (200, json.dumps({"access_token": "three", "expires_in": 100}).encode()),
    ]
    settings = OAuthSettings(token_endpoint=provider, client_id="me", client_secret=Secret(CANARY))

    async def play() -> list[tuple[float, str]]:
        tokens, found = TokenSource(settings), []
        for seconds in (0, 79, 2, 78, 3, 3, 17):
            clock.now += seconds
            found.append((len(Provider.asked), (await tokens.token()).text.reveal()))
        return found

    played = asyncio.run(play())
    assert [text for _, text in played] == ["one", "one", "two", "two", "two", "two", "three"]
    assert [asked for asked, _ in played][:4] == [0, 1, 1, 2]  # kept: no request for each login
    assert len(Provider.asked) == 5


@pytest.mark.parametrize(
    ("status", "body", "kind", "why"),
    [
        (
            401,
            b'{"error":"invalid_client","error_description":"no"}',
            AuthenticationError,
            "invalid_client: no",
        ),
        (302, b"", AuthenticationError, "HTTP status 302"),
        (404, b"<html>", AuthenticationError, "HTTP status 404; are client id"),
        (503, b"", NetworkError, "in trouble: HTTP status 503"),
        (200, b"[]", AuthenticationError, "no JSON object"),
        (200, b"{}", AuthenticationError, "without access_token"),
        (200, b"[" * 100_000, AuthenticationError, "no JSON object"),
        (200, b" " * ((1 << 20) + 1), AuthenticationError, "more than"),
    ],
)
def test_providers_that_refuse_or_fail(
    provider: str, status: int, body: bytes, kind: type[PenstockError], why: str
) -> None:
    Provider.answers = [(status, body)]
    with pytest.raises(kind, match=why) as caught:
        fetched(provider)
    assert CANARY not in str(caught.value)


def test_a_provider_that_is_not_there_and_a_token_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="cannot be reached"):
        fetched("http://127.0.0.1:1/token")
    path = tmp_path / "token"
    path.write_text("opaque\n")
    assert fetched(f"file:{path}").text == Secret("opaque")
