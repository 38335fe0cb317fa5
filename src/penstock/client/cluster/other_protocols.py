"""What listens at an address that does not answer as a Kafka broker should: TLS, HTTP, or something unknown.

Asked only when a first contact has failed, for an error message that says what to do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.config import Address

PROBE_S = 2.0
"""How long a TLS handshake may take before the peer counts as one that does not speak TLS."""

TLS = (
    "expects TLS, which this client does not speak yet: name a listener of the protocol PLAINTEXT in "
    "bootstrap.servers"
)
HTTP = "speaks HTTP: bootstrap.servers wants the port of a Kafka broker"


def known_beginning(beginning: bytes) -> str | None:
    """What to say of a peer whose first answer begins with these four bytes; None where they mean nothing."""
    if beginning[:2] in (b"\x15\x03", b"\x16\x03"):  # an alert, or a handshake, of any version of TLS
        return TLS
    return HTTP if beginning == b"HTTP" else None


async def expects_tls(address: Address, timeout_s: float = PROBE_S) -> bool:
    """Whether a TLS handshake with a peer goes well, or is refused in the words of TLS."""
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
