"""Tests of client connections with TLS and SASL to a small server built from Penstock's server code.

They cover raw tokens, expired sessions and lost peers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import AuthenticationError, NetworkError
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import decode_request_header, encode_response
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.metadata_response import MetadataResponse
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from penstock.security.secrets import Secret
from penstock.security.tls import TlsConnection, TlsError
from penstock.security.tls_context import TlsSettings, server_context
from security_certificates import authority, issue

CA = authority()
SERVER = issue(CA)
CANARY = "canary-31c9"


class Server:
    """A small server that answers ApiVersions and Metadata, and accepts PLAIN with the password `CANARY`.

    It uses TLS if it has a context.
    """

    def __init__(self) -> None:
        self.context = server_context(
            TlsSettings(certificate=SERVER.certificate_pem, key=Secret(SERVER.key_pem))
        )
        self.uses_tls = True
        self.is_old = False
        """True if the server accepts only raw SASL tokens, without SaslAuthenticate."""
        self.lifetime_ms = 0
        self.token_delay_s = 0.0
        self.versions_delay_s = 0.0
        self.log: list[str] = []
        self.port = 0
        self.password = CANARY

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tls = TlsConnection(self.context, is_server=True) if self.uses_tls else None
        pending = bytearray()
        is_raw = False
        try:
            while data := await reader.read(4096):
                if tls is None:
                    pending += data
                else:
                    buffer = bytearray(4096)
                    try:
                        tls.receive(data)
                        while count := tls.read_into(buffer):
                            pending += buffer[:count]
                    except TlsError as error:
                        self.log.append(str(error))
                        writer.writelines(tls.to_send())
                        return
                    writer.writelines(tls.to_send())
                while len(pending) >= 4 and len(pending) >= 4 + int.from_bytes(pending[:4], "big"):
                    size = int.from_bytes(pending[:4], "big")
                    frame = bytes(pending[4 : 4 + size])
                    del pending[: 4 + size]
                    if is_raw:
                        is_raw = False
                        if not frame.endswith(b"\0" + self.password.encode()):
                            return
                        chunks: list[Any] = [bytes(4)]
                    else:
                        chunks, is_raw = await self.answer(frame)
                    if tls is not None:
                        for chunk in chunks:
                            tls.write(bytes(chunk))
                        chunks = tls.to_send()
                    writer.writelines([bytes(chunk) for chunk in chunks])
        except ConnectionError:
            return
        finally:
            writer.close()

    async def answer(self, frame: bytes) -> tuple[list[Any], bool]:
        header, position = decode_request_header(frame)
        entry = API_TABLE[header.api_key]
        request, _ = codec_for(entry.request, header.api_version).decode(frame, position)
        self.log.append(entry.request.NAME.removesuffix("Request"))
        is_raw = False
        if header.api_key == ApiKey.API_VERSIONS:
            await asyncio.sleep(self.versions_delay_s)
            known = {18: (0, 3), 3: (0, 12), 17: (0, 1), 36: (0, 2)}
            if self.is_old:
                known = {18: (0, 0), 3: (0, 2), 17: (0, 0)}
            if header.api_version > known[18][1]:
                response: Any = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18)])
                return encode_response(response, 0, header.correlation_id), False
            keys = [
                ApiVersion(api_key=k, min_version=low, max_version=high) for k, (low, high) in known.items()
            ]
            response = ApiVersionsResponse(api_keys=keys)
        elif header.api_key == ApiKey.SASL_HANDSHAKE:
            response, is_raw = SaslHandshakeResponse(mechanisms=["PLAIN"]), header.api_version == 0
        elif header.api_key == ApiKey.SASL_AUTHENTICATE:
            await asyncio.sleep(self.token_delay_s)
            if bytes(request.auth_bytes).endswith(b"\0" + self.password.encode()):
                response = SaslAuthenticateResponse(session_lifetime_ms=self.lifetime_ms)
            else:
                response = SaslAuthenticateResponse(error_code=58, error_message="no")
        else:
            response = MetadataResponse(brokers=[], topics=[])
        return encode_response(response, header.api_version, header.correlation_id), is_raw


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server
        await asyncio.sleep(0)


def played(server: Server, scenario: Callable[[AsyncClient], Awaitable[None]], **more: object) -> None:
    """Run a test scenario with a client of the server."""

    async def play() -> None:
        async with serving(server):
            settings: dict[str, object] = {
                "bootstrap.servers": f"localhost:{server.port}",
                "security.protocol": "SASL_SSL" if server.uses_tls else "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "ann",
                "sasl.password": CANARY,
                **({"ssl.ca.pem": CA.certificate_pem} if server.uses_tls else {}),
                **{name.replace("_", "."): value for name, value in more.items()},
            }
            async with AsyncClient(ClientConfig.parse(settings, {})) as client:
                await scenario(client)

    asyncio.run(play())


async def ask(client: AsyncClient) -> None:
    await client.refresh()


@pytest.mark.parametrize("uses_tls", [False, True])
@pytest.mark.parametrize("is_old", [False, True])
def test_a_request_after_authentication_by_either_kind_of_token(uses_tls: bool, is_old: bool) -> None:
    server = Server()
    server.uses_tls, server.is_old = uses_tls, is_old
    played(server, ask)
    tokens = [] if is_old else ["SaslAuthenticate"]
    assert [name for name in server.log if name != "ApiVersions"] == ["SaslHandshake", *tokens, "Metadata"]


def test_a_broker_slow_to_say_its_versions_is_asked_nothing_else_before_the_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.client.cluster.negotiation.PROMPT_S", 0.01)
    server = Server()
    server.versions_delay_s = 0.1
    played(server, ask)
    assert server.log == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata"]


@pytest.mark.parametrize("is_old", [False, True])
def test_a_wrong_password_is_told_at_once_and_nothing_else_is_sent(
    is_old: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    server.is_old, server.password = is_old, "other"

    async def scenario(client: AsyncClient) -> None:
        with pytest.raises(AuthenticationError, match="is the password of 'ann' right") as caught:
            await client.bootstrap()
        assert CANARY not in str(caught.value)

    with caplog.at_level(logging.DEBUG):
        played(server, scenario)
    assert "Metadata" not in server.log
    assert CANARY not in caplog.text


def test_requests_made_while_credentials_are_shown_again_wait_and_keep_their_order() -> None:
    server = Server()
    server.lifetime_ms = 100_000
    server.token_delay_s = 0.05

    async def scenario(client: AsyncClient) -> None:
        peer = await client.peer()
        connection = peer.connection
        before = connection.request(MetadataRequest(topics=[]), 12, 5)
        connection.session.renew()
        during = [connection.request(MetadataRequest(topics=[]), 12, 5) for _ in range(3)]
        assert not connection.is_idle
        assert connection.unsent_bytes
        for future in [before, *during]:
            assert isinstance(await future, MetadataResponse)
        assert connection.cause is None
        assert connection.is_idle

    played(server, scenario)
    rounds = ["SaslHandshake", "SaslAuthenticate"]
    assert [name for name in server.log if name != "ApiVersions"] == [
        *rounds,
        "Metadata",
        *rounds,
        *["Metadata"] * 3,
    ]


def test_a_request_after_the_end_of_the_session_shows_credentials_first() -> None:
    server = Server()
    server.lifetime_ms = 100_000

    async def scenario(client: AsyncClient) -> None:
        connection = (await client.peer()).connection
        connection.session.ends_at = asyncio.get_running_loop().time()
        await connection.request(MetadataRequest(topics=[]), 12, 5)

    played(server, scenario)
    assert server.log[-3:] == ["SaslHandshake", "SaslAuthenticate", "Metadata"]


def test_a_password_that_changed_meanwhile_ends_the_connection_with_that_reason() -> None:
    server = Server()
    server.lifetime_ms = 100_000

    async def scenario(client: AsyncClient) -> None:
        connection = (await client.peer()).connection
        server.password = "changed"
        connection.session.renew()
        held = connection.request(MetadataRequest(topics=[]), 12, 5)
        with pytest.raises(AuthenticationError, match="password of 'ann'"):
            await held
        assert isinstance(connection.cause, AuthenticationError)

    played(server, scenario)


def test_a_client_that_does_not_know_the_ca_tells_the_server_by_an_alert() -> None:
    server = Server()

    async def scenario(client: AsyncClient) -> None:
        with pytest.raises(AuthenticationError, match=r"^localhost:\d+: .*unknown CA"):
            await client.bootstrap()
        await asyncio.sleep(0.05)

    played(server, scenario, ssl_ca_pem=authority("other").certificate_pem)
    assert any("does not know the CA" in line for line in server.log)
    assert "SaslHandshake" not in server.log


def test_a_server_that_hangs_up_when_tls_begins_is_no_reason_to_give_up() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    server = Server()
    server.serve = hang_up  # type: ignore[method-assign]

    async def scenario(client: AsyncClient) -> None:
        with pytest.raises(NetworkError, match=r"ended the connection when TLS began|in the middle"):
            await client.refresh()

    played(server, scenario)
