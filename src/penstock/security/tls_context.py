"""SSL contexts from settings: CAs, certificate and key from PEM files, PEM texts, PKCS12 or JKS stores.

The host name and the chain are verified unless a setting disables that. The minimum version is TLS 1.2. A
missing password is an error; OpenSSL never asks for it on the terminal. Errors name the file and what to do.
Private keys in texts and stores pass to OpenSSL through memory, not through files.
"""

from __future__ import annotations

import os
import re
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.security.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PEM_BEGIN = "-----BEGIN"
PRIVATE_KEY = "private key"
PATH_LIKE = re.compile(r"\.\w{1,8}$")
"""A pattern that matches text with a file extension at its end. It matches neither PEM text nor a key in
base64.
"""
CERTIFICATES = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
STORE_BYTES_MAX = 16 << 20
"""The maximum size in bytes of a file that is read as a certificate, key or store."""

VERSIONS = {"TLSV1.2": ssl.TLSVersion.TLSv1_2, "TLSV1.3": ssl.TLSVersion.TLSv1_3}
TOO_OLD = frozenset(("SSL", "SSLV2", "SSLV3", "TLSV1", "TLSV1.0", "TLSV1.1"))
NO_SYSTEM_CAS = ("probe", "system", "")
CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""The allowed values of the broker's ``ssl.client.auth``, and OpenSSL's mode for each."""


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """The settings of a TLS context. A PEM text, which begins with ``-----BEGIN``, may replace a path."""

    ca: str | None = None
    """File or directory of CAs, or their PEM text; None means the system's."""
    ca_inline: str | None = None
    certificate: str | None = None
    """The path or PEM text of this end's certificate and its chain, leaf first; None without one."""
    key: Secret | None = None
    """The private key of `certificate`: a path or a text. None if the certificate's file or text has the key,
    too."""
    key_password: Secret | None = None
    keystore: str | None = None
    keystore_type: str | None = None
    keystore_password: Secret | None = None
    truststore: str | None = None
    truststore_type: str | None = None
    truststore_password: Secret | None = None
    crl: str | None = None
    verify: bool = True
    """True if a server's certificate is verified; False if any certificate is accepted."""
    verify_host: bool = True
    client_auth: str = "none"
    """The server's requirement of client certificates, such as ``required``: a key of `CLIENT_AUTH`."""
    versions: tuple[str, ...] = ()
    """The allowed versions, such as ``TLSv1.2``; empty means 1.2 and 1.3."""
    ciphers: str | None = None
    """Cipher names of OpenSSL or of Java, separated by commas or colons."""
    curve: str | None = None


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a client. Raises ConfigError if a file or a text cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.verify and settings.verify_host
    context.verify_mode = ssl.CERT_REQUIRED if settings.verify else ssl.CERT_NONE
    # As in Java: what is among the trusted certificates is trusted, be it a root or not.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    _common(context, settings)
    _own_certificate(context, settings)
    if settings.verify:
        _trust(context, settings, system=True)
    return context


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a listener.

    Raises ConfigError if the listener's certificate is missing or cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _common(context, settings)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0  # clients of Kafka keep connections, not sessions
    if settings.keystore is None and settings.certificate is None:
        raise ConfigError("a TLS listener needs a certificate and a key: set ssl.keystore.location")
    _own_certificate(context, settings)
    context.verify_mode = CLIENT_AUTH[settings.client_auth]
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, settings, system=True)
    return context


def _common(context: ssl.SSLContext, settings: TlsSettings) -> None:
    chosen = []
    for name in settings.versions:
        word = name.strip().upper()
        if word in TOO_OLD:
            continue
        if word not in VERSIONS:
            raise ConfigError(f"ssl.enabled.protocols: {name!r} is not known; there are TLSv1.2 and TLSv1.3")
        chosen.append(VERSIONS[word])
    if settings.versions and not chosen:
        raise ConfigError(
            "ssl.enabled.protocols: all that is named is too old; TLSv1.2 and TLSv1.3 are spoken"
        )
    context.minimum_version = min(chosen, default=ssl.TLSVersion.TLSv1_2)
    if chosen:
        context.maximum_version = max(chosen)
    if settings.ciphers:
        _choose_ciphers(context, settings.ciphers)
    if settings.curve:
        try:
            context.set_ecdh_curve(settings.curve)
        except (ValueError, ssl.SSLError) as error:
            raise ConfigError(
                f"ssl.curves.list = {settings.curve!r}: one name of a curve is expected, such as prime256v1"
            ) from error


def _choose_ciphers(context: ssl.SSLContext, text: str) -> None:
    names = [name.strip() for name in re.split(r"[,:\s]+", text) if name.strip()]
    # Suites of TLS 1.3 cannot be chosen one by one in Python; all of them are sound.
    old = [openssl_cipher(name) for name in names if not _is_of_1_3(name)]
    if not old:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    if len(old) == len(names) and all(name.startswith("TLS_") for name in names):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.set_ciphers(":".join(old))
    except ssl.SSLError:
        raise ConfigError(f"ssl.cipher.suites = {text!r}: OpenSSL has none of these") from None


def _is_of_1_3(name: str) -> bool:
    return name.startswith("TLS_") and "_WITH_" not in name


def openssl_cipher(name: str) -> str:
    """Return OpenSSL's name of a cipher suite with a Java name, or the name unchanged.

    An example of Java's names is ``TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384``.
    """
    if not name.startswith("TLS_") or "_WITH_" not in name:
        return name
    exchange, _, cipher = name[4:].partition("_WITH_")
    cipher = re.sub(r"^AES_(128|256)", r"AES\1", cipher).replace("_CBC_", "_")
    if cipher.startswith("CHACHA20_POLY1305"):
        cipher = "CHACHA20_POLY1305"
    exchange = "" if exchange == "RSA" else f"{exchange}-"
    return f"{exchange}{cipher}".replace("_", "-")


def _trust(context: ssl.SSLContext, settings: TlsSettings, *, system: bool) -> None:
    given = settings.ca_inline or settings.ca
    if given in NO_SYSTEM_CAS:
        given = None
    if given is not None:
        _load_cas(context, given)
    if settings.truststore is not None:
        _load_cas(
            context,
            settings.truststore
            if PEM_BEGIN in settings.truststore
            else _truststore_pem(settings.truststore, settings.truststore_password),
        )
    if given is None and settings.truststore is None and system:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH if context.check_hostname is False else ssl.Purpose.SERVER_AUTH
        )
    if settings.crl is not None:
        try:
            context.load_verify_locations(cafile=settings.crl)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"the revocation list {settings.crl} cannot be used: {_why(error)}") from None
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _load_cas(context: ssl.SSLContext, given: str) -> None:
    try:
        if PEM_BEGIN in given:
            found = CERTIFICATES.findall(_unfolded(given))
            if not found:
                raise ConfigError("the text given as CA holds no certificate: -----BEGIN CERTIFICATE-----")
            context.load_verify_locations(cadata=_only_ascii("\n".join(found)))
        elif os.path.isdir(given):
            context.load_verify_locations(capath=given)
        else:
            context.load_verify_locations(cadata=_cas_of_file(given))
    except ConfigError:
        raise
    except (OSError, ssl.SSLError, ValueError) as error:
        where = "in the settings" if PEM_BEGIN in given else given
        raise ConfigError(f"the CA {where} cannot be used: {_why(error)}") from None


def _cas_of_file(path: str) -> str | bytes:
    data = read_store(path, "CA file")
    if data[:4] in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"):
        raise ConfigError(
            f"{path} is a Java store: set it as ssl.truststore.location, not as ssl.ca.location"
        )
    if b"-----BEGIN" not in data:
        return data
    found = CERTIFICATES.findall(data.decode("utf-8", "replace"))
    if not found:
        raise ConfigError(f"{path} holds no certificate: -----BEGIN CERTIFICATE----- is expected")
    return _only_ascii("\n".join(found))


def _only_ascii(pem: str) -> str:
    """Return PEM text unchanged. Raises ValueError if it has characters that OpenSSL does not accept."""
    if not pem.isascii():
        raise ValueError("there are characters between -----BEGIN and -----END that are not PEM")
    return pem


def _truststore_pem(path: str, password: Secret | None) -> str:
    data = read_store(path, "truststore")
    if b"-----BEGIN" in data:
        return data.decode("utf-8", "replace")
    from penstock.security.stores import read_truststore

    return "\n".join(read_truststore(path, data, password))


def own_certificate(settings: TlsSettings) -> bytes | None:
    """Return this end's certificate from the settings in DER, without its chain; None if there is none.

    Raises:
        ConfigError: a file cannot be read, or holds no certificate.
    """
    pair = _own_pair(settings)
    if pair is None:
        return None
    found = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", pair[0].reveal(), re.DOTALL)
    if found is None:
        raise ConfigError(f"{pair[2]}: there is no certificate (-----BEGIN CERTIFICATE-----)")
    try:
        return ssl.PEM_cert_to_DER_cert(found[0])
    except ValueError:
        raise ConfigError(f"{pair[2]}: the certificate is damaged") from None


def _own_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    pair = _own_pair(settings)
    if pair is not None:
        text, password, source = pair
        _load_pair(context, text.reveal(), password, source)


def _own_pair(settings: TlsSettings) -> tuple[Secret, Secret | None, str] | None:
    """Return key and chain as PEM text, the key's password or None, and their source for error messages."""
    if settings.keystore is not None:
        name, password = settings.keystore, settings.keystore_password
        data = read_store(name, "keystore")
        if b"-----BEGIN" in data:
            return Secret(data.decode("utf-8", "replace")), settings.key_password or password, name
        from penstock.security.stores import read_keystore

        key, chain, key_password = read_keystore(name, data, password, settings.key_password)
        return Secret(key.reveal() + "\n" + "\n".join(chain)), key_password, name
    if settings.certificate is None:
        if settings.key is not None:
            raise ConfigError("a private key is given without its certificate: set ssl.certificate.location")
        return None
    certificate, source = _pem(settings.certificate, "certificate")
    key_text = ""
    if settings.key is not None:
        key_text, source = _pem(settings.key.reveal(), PRIVATE_KEY)
    return Secret(f"{key_text}\n{certificate}"), settings.key_password, source


def _pem(given: str, what: str) -> tuple[str, str]:
    """Return the PEM text (`given` is the text itself or a file's path) and its name in error messages."""
    if PEM_BEGIN in given:
        return _unfolded(given), f"the {what} in the settings"
    if what == PRIVATE_KEY and not PATH_LIKE.search(given) and not os.path.exists(os.path.expanduser(given)):
        # It may be the key itself, pasted without its first line: nothing of it is shown.
        raise ConfigError(f"the {what} is neither PEM text ({PEM_BEGIN} PRIVATE KEY-----) nor a file")
    return read_store(given, what).decode("utf-8", "replace"), given


def _unfolded(text: str) -> str:
    r"""Return PEM text with line ends restored.

    In properties files, PEM text is on one line, with spaces or ``\n`` instead of line ends.
    """
    text = text.replace("\\n", "\n").strip()
    if "\n" in text:
        return text

    def unfold(match: re.Match[str]) -> str:
        return f"{match[1]}\n" + "\n".join(match[2].split()) + f"\n{match[3]}\n"

    return re.sub(r"(-----BEGIN [A-Z ]+-----)(.*?)(-----END [A-Z ]+-----)", unfold, text)


def read_store(path: str, what: str) -> bytes:
    """Return the bytes of a file of certificates or keys. Raises ConfigError if it cannot be read."""
    try:
        with open(os.path.expanduser(path), "rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"the {what} {path} cannot be read: {error.strerror}") from None
    if len(data) > STORE_BYTES_MAX:
        raise ConfigError(f"the {what} {path} is longer than {STORE_BYTES_MAX} bytes")
    return data


def _load_pair(context: ssl.SSLContext, text: str, password: Secret | None, source: str) -> None:
    if "PRIVATE KEY-----" not in text:
        raise ConfigError(
            f"{source}: there is no private key (-----BEGIN PRIVATE KEY-----); set ssl.key.location"
        )
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise ConfigError(f"{source}: there is no certificate (-----BEGIN CERTIFICATE-----)")
    asked = _Asked(password)
    with _in_memory(text.encode()) as path:
        try:
            context.load_cert_chain(path, password=asked)
        except (OSError, ssl.SSLError) as error:
            if asked.is_missing:
                raise ConfigError(f"{source}: the private key is encrypted; set ssl.key.password") from None
            reason = getattr(error, "reason", None) or ""
            if reason == "KEY_VALUES_MISMATCH":
                raise ConfigError(f"{source}: the private key does not belong to the certificate") from None
            if asked.was_asked:
                raise ConfigError(f"{source}: ssl.key.password does not open the private key") from None
            raise ConfigError(f"{source}: certificate and key cannot be used: {_why(error)}") from None


class _Asked:
    """The password callback for OpenSSL. `was_asked` is True after OpenSSL has requested the password."""

    def __init__(self, password: Secret | None) -> None:
        self._password = password
        self.was_asked = False

    @property
    def is_missing(self) -> bool:
        return self.was_asked and not self._password

    def __call__(self) -> str:
        self.was_asked = True
        return self._password.reveal() if self._password else ""


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """Yield a path at which OpenSSL can read `data`: it reads certificates with keys only from files."""
    create: Callable[[str], int] | None = getattr(os, "memfd_create", None)
    descriptor = -1 if create is None else create("penstock")
    if descriptor < 0 or not os.path.exists(f"/proc/self/fd/{descriptor}"):
        if descriptor >= 0:
            os.close(descriptor)
        import tempfile

        with tempfile.NamedTemporaryFile() as file:  # mode 0600
            file.write(data)
            file.flush()
            yield file.name
        return
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason:
        return str(reason).lower().replace("_", " ")
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()
