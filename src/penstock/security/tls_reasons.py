"""Explanations of TLS failures: OpenSSL's error, the end that refused, and what to do about it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

HANDSHAKE_RECORD, ALERT_RECORD = 0x16, 0x15
"""The TLS record types with which a connection can begin (RFC 8446, section 5.1). Other first bytes are not
TLS.
"""

UNKNOWN_CA = frozenset((2, 18, 19, 20, 21))
EXPIRED, NOT_YET_VALID, REVOKED, WRONG_PURPOSE = 10, 9, 23, 26
WRONG_HOST = frozenset((62, 64))
"""OpenSSL's verification errors for a wrong host name or address (X509_V_ERR in ``x509_vfy.h``)."""

UNREADABLE = "DECRYPTION_FAILED_OR_BAD_RECORD_MAC"
UNREADABLE_FIRST = (
    "the first record after the handshake cannot be decrypted; brokers on some Java versions refuse a client "
    "like that: is a client certificate wanted (ssl.keystore.location, or ssl.certificate.location and "
    "ssl.key.location)?"
)
"""The explanation for an alert that was encrypted with handshake keys (Kafka 2.8 on Java 17)."""

REASONS: Mapping[str, str] = {
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS, or no version that is allowed here",
    "HTTP_REQUEST": "the peer speaks HTTP",
    "UNSUPPORTED_PROTOCOL": "the peer offers no version of TLS that is allowed here: 1.2 or newer is needed",
    "NO_PROTOCOLS_AVAILABLE": "no version of TLS is enabled: see ssl.enabled.protocols",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the peer refuses the versions of TLS that are enabled here",
    "NO_SHARED_CIPHER": "no cipher in common: see ssl.cipher.suites, and the type of the key",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the peer refuses: no common cipher, or it needs a client certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, and one is required",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer requires a client certificate, and none was sent: "
    "set ssl.keystore.location, or ssl.certificate.location and ssl.key.location",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer refuses this side's certificate, or requires one and got none: "
    "set ssl.keystore.location, or ssl.certificate.location and ssl.key.location",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not trust this side's certificate: "
    "is it signed by a CA that the peer trusts, and is it still valid?",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not know the CA of this side's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer says that this side's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the peer says that this side's certificate was revoked",
    "TLSV1_ALERT_DECRYPT_ERROR": "the peer could not verify a signature: is the key that of the certificate?",
    "TLSV1_ALERT_INTERNAL_ERROR": "the peer reports an error of its own: see its log; does it speak TLS?",
    "TLSV1_UNRECOGNIZED_NAME": "the peer does not know the host name that was asked for",
    "DECRYPTION_FAILED_OR_BAD_RECORD_MAC": "a record was damaged or forged on its way",
    "CA_KEY_TOO_SMALL": "a CA's key is too short for today's security level",
    "EE_KEY_TOO_SMALL": "the certificate's key is too short for today's security level",
    "CA_MD_TOO_WEAK": "a certificate is signed with a hash that is too weak (SHA-1 or MD5)",
}
"""A dict from OpenSSL's name of a failure to the explanation in Penstock's error message."""


def not_tls(beginning: bytes, *, is_server: bool) -> str | None:
    """Return an explanation for the error message if a peer's first bytes are not TLS; otherwise None."""
    if beginning[:1] in (bytes([HANDSHAKE_RECORD]), bytes([ALERT_RECORD])):
        return None
    if beginning[:4] in (b"GET ", b"POST", b"HTTP", b"HEAD", b"PUT "):
        return "the peer speaks HTTP, not TLS"
    if not is_server:
        return "this port does not speak TLS: set security.protocol=PLAINTEXT or SASL_PLAINTEXT"
    if beginning[:1] == b"\0":
        return (
            "a client that speaks Kafka without TLS: it needs security.protocol=SSL or SASL_SSL on this port"
        )
    return "a client that does not speak TLS"


def certificate_names(tls: ssl.SSLObject) -> str:
    """Return the names in a peer's unverified certificate, such as ``DNS:a, IP Address:::1``, or ""."""
    try:
        chain: Any = tls._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
        names = chain[0].get_info().get("subjectAltName", ())
    except (AttributeError, IndexError, TypeError, ValueError, ssl.SSLError):
        return ""
    return ", ".join(f"{kind}:{name}" for kind, name in names)[:500]


def why_refused(error: Exception, is_server: bool, name: str | None, names: str) -> str:
    """Return one line: what failed, at which end, what to do. `names` are those in the peer's certificate."""
    peer = "client" if is_server else "server"
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        if code in WRONG_HOST or "mismatch" in error.verify_message.lower():
            listed = f" (it is for {names})" if names else ""
            return (
                f"the server's certificate is not valid for {name!r}{listed}: connect by a name in it, have "
                "it made for the advertised host, or set ssl.endpoint.identification.algorithm to none"
            )
        if code in UNKNOWN_CA:
            cure = (
                "its CA is not among those of this listener's truststore"
                if is_server
                else "set ssl.ca.location or ssl.truststore.location to the CA that signed it"
            )
            return f"the {peer}'s certificate is signed by an unknown CA ({error.verify_message}): {cure}"
        if code == EXPIRED:
            return f"the {peer}'s certificate has expired, or that of its CA: renew it (or is a clock wrong?)"
        if code == NOT_YET_VALID:
            return f"the {peer}'s certificate is not yet valid: is a clock wrong?"
        if code == REVOKED:
            return f"the {peer}'s certificate was revoked"
        if code == WRONG_PURPOSE:
            return f"the {peer}'s certificate is not made for a {peer} (extended key usage)"
        return f"the {peer}'s certificate is refused: {error.verify_message}"
    reason = getattr(error, "reason", None) or ""
    words = REASONS.get(reason)
    if words is not None:
        return words
    if "ALERT" in reason:
        return f"the peer refuses: alert {reason.partition('ALERT_')[2].lower().replace('_', ' ')}"
    return f"TLS failed: {reason.lower().replace('_', ' ') or error}"
