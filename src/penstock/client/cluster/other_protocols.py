"""Detection of another protocol, TLS or HTTP, at an address that does not answer as a Kafka broker.

The client uses it only after a first contact has failed, for an error message with advice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import AuthenticationError, NetworkError, PenstockError
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from penstock.client.addresses import Address
    from penstock.client.security.settings import SecuritySettings
    from penstock.protocol.message import Message


PROBE_S = 2.0
"""The time limit in seconds for a TLS handshake. After that, the peer counts as one without TLS."""

TLS = "expects TLS: set security.protocol=SSL, or SASL_SSL where it requires a password or token as well"
NO_TLS = "does not speak TLS: set security.protocol=PLAINTEXT, or SASL_PLAINTEXT with sasl.mechanism"
HTTP = "speaks HTTP: bootstrap.servers takes the port of a Kafka broker"


class Requester(Protocol):
    """The interface of a connection, as this module uses it to detect other protocols."""

    def request(self, message: Message, version: int, timeout_s: float) -> asyncio.Future[Any]:
        """Send a request, and return the future of its response."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def known_beginning(beginning: bytes) -> str | None:
    """Return advice if a peer's first four bytes are those of TLS or HTTP, else None."""
    if beginning[:2] in (b"\x15\x03", b"\x16\x03"):  # an alert, or a handshake, of any version of TLS
        return TLS
    return HTTP if beginning == b"HTTP" else None


async def expects_tls(address: Address, timeout_s: float = PROBE_S) -> bool:
    """Return True if a peer uses TLS: it completes a TLS handshake, or refuses it with a TLS error."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(*address, ssl=context)
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "") or error.reason == "UNSUPPORTED_PROTOCOL"
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return True


async def explained(
    error: NetworkError, address: Address, security: SecuritySettings | None
) -> PenstockError:
    """Return an error about a wrong TLS setting if that is the cause of `error`, else return `error`.

    The client's setting is compared with a probe: the peer may use TLS, or Kafka's protocol without TLS.
    """
    if security is not None and security.uses_tls and await speaks_kafka_plainly(address):
        return AuthenticationError(f"{address} {NO_TLS}")
    if security is not None and not security.uses_tls and await expects_tls(address):
        return AuthenticationError(f"{address} {TLS}")
    return error


async def speaks_kafka_plainly(address: Address, timeout_s: float = PROBE_S) -> bool:
    """Return True if a peer answers ApiVersions version 0 without TLS."""
    question = bytes.fromhex("0000000a 0012 0000 00000001 0000")
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(*address)
            try:
                writer.write(question)
                answer = await reader.readexactly(8)
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError, EOFError):
        return False
    return answer[0] == 0 and answer[4:] == question[8:12]


async def wants_sasl(
    address: Address, connect: Callable[[Address], Awaitable[Requester]], *, uses_tls: bool
) -> AuthenticationError | None:
    """Return the error for a broker that requires SASL before other requests; None for another broker."""
    from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest

    try:
        connection = await connect(address)
        try:
            answer = await connection.request(SaslHandshakeRequest(mechanism=""), 1, PROBE_S)
        finally:
            connection.close()
    except PenstockError:
        return None
    # Only this answer lists the mechanisms that are enabled.
    if answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    protocol = "SASL_SSL" if uses_tls else "SASL_PLAINTEXT"
    enabled = ", ".join(sorted(answer.mechanisms)[:20])
    return AuthenticationError(
        f"{address} requires clients to authenticate: set security.protocol={protocol}, and sasl.mechanism "
        f"to one of: {enabled}"
    )
