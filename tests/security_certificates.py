"""Certificates that tests create when needed, for CAs, servers and clients.

They are valid, expired, or for other hosts.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
DAY = datetime.timedelta(days=1)


class Pair(NamedTuple):
    """A certificate with its private key and its issuers' certificates."""

    certificate: x509.Certificate
    key: PrivateKey
    issuers: tuple[x509.Certificate, ...] = ()

    @property
    def certificate_pem(self) -> str:
        chain = (self.certificate, *self.issuers)
        return "".join([each.public_bytes(serialization.Encoding.PEM).decode() for each in chain])

    @property
    def key_pem(self) -> str:
        return self.encrypted_key_pem("")

    def encrypted_key_pem(self, password: str) -> str:
        """Return the private key as PKCS #8 PEM, encrypted unless the password is empty."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def write(self, directory: Path, name: str) -> tuple[str, str]:
        """Write the certificate and the key as PEM files; return the two paths."""
        directory.mkdir(parents=True, exist_ok=True)
        certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
        certificate.write_text(self.certificate_pem)
        key.write_text(self.key_pem)
        return str(certificate), str(key)


def authority(name: str = "test CA", *, signer: Pair | None = None) -> Pair:
    """Create a CA certificate, signed by `signer` or by itself."""
    return _make(name, signer, is_ca=True)


def self_signed(name: str = "localhost", hosts: tuple[str, ...] = ("localhost",)) -> Pair:
    """Create a server certificate that is signed by its own key instead of a CA."""
    return _make(name, None, hosts)


def issue(
    signer: Pair,
    name: str = "localhost",
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    *,
    expired: bool = False,
    future: bool = False,
    client: bool = False,
    rsa_key: bool = False,
) -> Pair:
    """Create a server or client certificate; it is valid for a day unless arguments change that."""
    return _make(name, signer, hosts, expired=expired, future=future, client=client, rsa_key=rsa_key)


def _make(
    name: str,
    signer: Pair | None,
    hosts: tuple[str, ...] = (),
    *,
    is_ca: bool = False,
    expired: bool = False,
    future: bool = False,
    client: bool = False,
    rsa_key: bool = False,
) -> Pair:
    key: PrivateKey = (
        rsa.generate_private_key(65537, 2048) if rsa_key else ec.generate_private_key(ec.SECP256R1())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    begin = now - 10 * DAY if expired else now + DAY if future else now - DAY
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if signer is None else signer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + 5 * DAY)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    signing = key if signer is None else signer.key
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
    )
    if is_ca:
        builder = builder.add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True
        )
    else:
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        if names and not client:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    is_root_signed = signer is None or signer.certificate.issuer == signer.certificate.subject
    issuers = () if signer is None or is_root_signed else (signer.certificate, *signer.issuers)
    made = builder.sign(signing, hashes.SHA256())
    return Pair(made, key, issuers)
