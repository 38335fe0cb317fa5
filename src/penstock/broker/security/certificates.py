"""Throw-away certificates for tests, from a certificate authority for each broker (with `cryptography`)."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.errors import MissingDependencyError

LIFETIME = datetime.timedelta(days=30)
"""The lifetime of a test certificate: longer than any test, and too short for production use."""


class Issued(NamedTuple):
    """A certificate of a test authority, with certificate chain and private key, all in PEM."""

    certificate_pem: bytes
    key_pem: bytes

    def __repr__(self) -> str:
        return "Issued([hidden])"


class CertificateAuthority:
    """A certificate authority for tests, which signs certificates of servers and clients.

    Raises:
        MissingDependencyError: `cryptography` is not installed.
    """

    def __init__(self, name: str = "Penstock throw-away CA") -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            raise MissingDependencyError(
                "making certificates needs cryptography; install it with: pip install 'penstock[security]'"
            ) from None
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key(), LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._certificate = self._signed(builder.add_extension(identifier, critical=False))
        self.certificate_pem = self._pem(self._certificate)

    def issue(self, name: str, hosts: Iterable[str], *, lifetime: datetime.timedelta = LIFETIME) -> Issued:
        """Return a certificate for a common name, valid for these host names and addresses.

        If `lifetime` is negative, the certificate has expired already.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key.public_key(), lifetime)
        names = [_general_name(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = self._signed(builder.add_extension(signer, critical=False))
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Issued(self._pem(made) + self.certificate_pem, key_pem)

    def _builder(self, subject: Any, public_key: Any, lifetime: datetime.timedelta) -> Any:
        from cryptography import x509

        now = datetime.datetime.now(datetime.UTC)
        begin = now - datetime.timedelta(hours=1)
        if lifetime < datetime.timedelta(0):
            begin = now + lifetime - datetime.timedelta(hours=1)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(now + lifetime)
        )

    def _signed(self, builder: Any) -> Any:
        from cryptography.hazmat.primitives import hashes

        return builder.sign(self._key, hashes.SHA256())

    @staticmethod
    def _pem(certificate: Any) -> bytes:
        from cryptography.hazmat.primitives import serialization

        data: bytes = certificate.public_bytes(serialization.Encoding.PEM)
        return data


def _general_name(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
