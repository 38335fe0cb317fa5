"""Key stores of Java: JKS by a reader in this module, PKCS12 through the library `cryptography`.

The layout of JKS is that of ``sun.security.provider.JavaKeyStore``: big-endian entries after the magic
``FEEDFEED``, then SHA-1 over the password, the words "Mighty Aphrodite" and everything before. Private keys
are xored with a chain of SHA-1 (``sun.security.provider.KeyProtector``). Lengths in a file are checked
against the bytes that remain before they are used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.security.secrets import Secret

JKS_MAGIC, JCEKS_MAGIC = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
KEY_ENTRY, CERTIFICATE_ENTRY = 1, 2
WHITENER = b"Mighty Aphrodite"
KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier (1.3.6.1.4.1.42.2.17.1.1, in DER) of the algorithm with which JKS encrypts keys."""

DIGEST_BYTES = 20


class StoredKey(NamedTuple):
    """A private key of a JKS file, as stored (encrypted), with its certificate chain."""

    alias: str
    protected: bytes
    chain: list[bytes]


class JavaStore(NamedTuple):
    """The entries of a JKS file. Certificates are in DER."""

    keys: list[StoredKey]
    certificates: list[bytes]


def read_truststore(path: str, data: bytes, password: Secret | None) -> list[str]:
    """Return the certificates of a store as PEM texts. A JKS file needs no password.

    Raises:
        ConfigError: a wrong password, a damaged file, or another kind of file.
    """
    if data[:4] == JKS_MAGIC:
        store = read_jks(path, data, password)
        found = [*store.certificates, *(each for key in store.keys for each in key.chain[:1])]
    else:
        found = _read_pkcs12(path, data, password)[1]
    if not found:
        raise ConfigError(f"the truststore {path} holds no certificate")
    return [_pem("CERTIFICATE", each) for each in found]


def read_keystore(
    path: str, data: bytes, password: Secret | None, key_password: Secret | None
) -> tuple[Secret, list[str], Secret | None]:
    """Return (first private key of a store, decrypted; its chain; None as the password), in PEM.

    Raises:
        ConfigError: the password is missing or wrong, there is no key, or the file is damaged or of another
            kind.
    """
    if not password:
        raise ConfigError(f"the keystore {path} needs its password: set ssl.keystore.password")
    if data[:4] == JKS_MAGIC:
        store = read_jks(path, data, password)
        if not store.keys:
            raise ConfigError(f"the keystore {path} holds no private key, only certificates")
        entry = store.keys[0]
        key = unprotected(path, entry.protected, key_password or password)
        chain = entry.chain
    else:
        found, chain = _read_pkcs12(path, data, password)
        if found is None:
            raise ConfigError(f"the keystore {path} holds no private key, only certificates")
        key = found
    return Secret(_pem("PRIVATE KEY", key)), [_pem("CERTIFICATE", each) for each in chain], None


def read_jks(path: str, data: bytes, password: Secret | None) -> JavaStore:
    """Return the entries of a JKS file. Without `password`, the digest of the file is not verified.

    Raises:
        ConfigError: a wrong password, or a damaged file.
    """
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if password is not None:
        computed = hashlib.sha1(_utf16(password) + WHITENER + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(computed, digest):
            raise ConfigError(f"{path}: the password of the store is wrong, or the file is damaged")
    store = JavaStore([], [])
    try:
        version, count = struct.unpack_from(">ii", body, 4)
        if version not in (1, 2):
            raise ConfigError(f"{path}: version {version} of JKS is not known")
        position = 12
        for _ in range(count):
            position = _read_entry(body, position, version, store)
    except (struct.error, ValueError):
        raise ConfigError(f"{path}: the store is damaged or cut") from None
    return store


def _read_entry(body: bytes, position: int, version: int, store: JavaStore) -> int:
    (kind,) = struct.unpack_from(">i", body, position)
    alias, position = _piece(body, position + 4, ">H")
    position += 8  # when it was made
    if kind == KEY_ENTRY:
        protected, position = _piece(body, position, ">i")
        (count,) = struct.unpack_from(">i", body, position)
        position += 4
        chain = []
        for _ in range(count):
            certificate, position = _certificate(body, position, version)
            chain.append(certificate)
        store.keys.append(StoredKey(alias.decode("utf-8", "replace"), protected, chain))
        return position
    if kind != CERTIFICATE_ENTRY:
        raise ValueError
    certificate, position = _certificate(body, position, version)
    store.certificates.append(certificate)
    return position


def _certificate(body: bytes, position: int, version: int) -> tuple[bytes, int]:
    if version == 2:
        _, position = _piece(body, position, ">H")  # X.509
    return _piece(body, position, ">i")


def _piece(body: bytes, position: int, layout: str) -> tuple[bytes, int]:
    (size,) = struct.unpack_from(layout, body, position)
    start = position + struct.calcsize(layout)
    if not 0 <= size <= len(body) - start:
        raise ValueError
    return body[start : start + size], start + size


def unprotected(path: str, protected: bytes, password: Secret) -> bytes:
    """Decrypt a private key of a JKS file; return it as PKCS8. Raises ConfigError for a wrong password."""
    try:
        outer, _ = _der(protected, 0, 0x30)
        algorithm, position = _der(outer, 0, 0x30)
        hidden, _ = _der(outer, position, 0x04)
    except (IndexError, ValueError):
        raise ConfigError(f"{path}: the private key is damaged") from None
    if not algorithm.startswith(KEY_PROTECTOR) or len(hidden) < 2 * DIGEST_BYTES:
        raise ConfigError(f"{path}: the private key is hidden in a way that is not known: {convert(path)}")
    secret = _utf16(password)
    link, covered, check = hidden[:DIGEST_BYTES], hidden[DIGEST_BYTES:-DIGEST_BYTES], hidden[-DIGEST_BYTES:]
    stream = bytearray()
    while len(stream) < len(covered):
        link = hashlib.sha1(secret + link, usedforsecurity=False).digest()
        stream += link
    key = bytes([a ^ b for a, b in zip(covered, stream, strict=False)])
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise ConfigError(f"{path}: ssl.key.password (or ssl.keystore.password) does not open the key")
    return key


def _der(data: bytes, position: int, tag: int) -> tuple[bytes, int]:
    """Parse one DER element; return its content, and the position of its end."""
    if data[position] != tag:
        raise ValueError
    size, position = data[position + 1], position + 2
    if size & 0x80:
        width = size & 0x7F
        size = int.from_bytes(data[position : position + width], "big")
        position += width
    if size > len(data) - position:
        raise ValueError
    return data[position : position + size], position + size


def _read_pkcs12(path: str, data: bytes, password: Secret | None) -> tuple[bytes | None, list[bytes]]:
    """Return a store's private key as PKCS8, or None, and its certificates in DER, the key's one first."""
    if data[:4] == JCEKS_MAGIC:
        raise ConfigError(f"{path} is a JCEKS store, which is not read: {convert(path)}")
    if data[:1] != b"\x30":
        raise ConfigError(f"{path} is no store that is known: PEM, PKCS12 and JKS are")
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        from penstock.common.extras import missing

        raise missing(error, f"the PKCS12 store {path}") from None
    try:
        store = pkcs12.load_pkcs12(data, password.reveal().encode() if password else None)
    except ValueError as error:
        if "password" in str(error).lower() or "mac" in str(error).lower():
            raise ConfigError(f"{path}: the password of the store is wrong") from None
        raise ConfigError(f"{path}: the PKCS12 store cannot be read; make it anew: {convert(path)}") from None
    except Exception as error:  # what OpenSSL no longer offers, RC2 among it, comes as several classes
        raise ConfigError(
            f"{path}: the PKCS12 store is encrypted in a way that is not supported ({type(error).__name__}); "
            f"make it anew: {convert(path)}"
        ) from None
    der = serialization.Encoding.DER
    entries = (store.cert, *store.additional_certs)
    certificates = [each.certificate.public_bytes(der) for each in entries if each]
    if store.key is None:
        return None, certificates
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return store.key.private_bytes(der, pkcs8, plain), certificates


def convert(path: str) -> str:
    """Return the keytool command that converts a store to PKCS12, as advice in error messages."""
    return f"keytool -importkeystore -srckeystore {path} -destkeystore new.p12 -deststoretype PKCS12"


def _utf16(password: Secret) -> bytes:
    return password.reveal().encode("utf-16-be", "surrogatepass")


def _pem(kind: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
