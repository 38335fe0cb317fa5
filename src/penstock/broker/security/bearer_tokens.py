"""Checks of bearer tokens: JWTs signed with the keys that an identity provider publishes.

This module never accepts a token without a signature. `penstock.broker.security.unsecured_tokens` accepts
such tokens if settings explicitly request this. Keys come from a file or by https. A thread reads them again
when they may have changed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from penstock.broker.config.security_settings import JWKS_URL
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, MissingDependencyError, PenstockError
from penstock.security.oauth import base64url_decoded

if TYPE_CHECKING:
    from penstock.broker.config.security_settings import BrokerSecuritySettings
    from penstock.clock import Clock

logger = logger_named("penstock.broker")

TOKEN_CHARACTERS_MAX = 32 << 10
"""The most characters of a token; longer tokens are refused."""

KEYS_BYTES_MAX = 1 << 20
"""The largest key set that is read from an identity provider's response or from a file, in bytes."""

KEYS_MAX = 100
"""The maximum number of keys of one identity provider that the broker stores."""

FETCH_TIMEOUT_S = 10.0
"""The time in which an identity provider must return its keys, in seconds."""

REFRESH_PAUSE_S = 60.0
"""The minimum seconds between two reads of the keys because of unknown key ids. Clients choose these
ids, so each could cause a read.
"""

ALGORITHMS = {
    "RS256": ("RSA", "SHA256"),
    "RS384": ("RSA", "SHA384"),
    "RS512": ("RSA", "SHA512"),
    "ES256": ("EC", "SHA256"),
    "ES384": ("EC", "SHA384"),
}
"""Algorithms of signatures that are accepted, each with the key type and the hash function."""


SURROGATES = re.compile("[\ud800-\udfff]")
"""A pattern for surrogate code points. JSON text can contain unpaired ones, which UTF-8 cannot encode."""


class GoodToken(NamedTuple):
    """The content of a valid token: its principal and expiry."""

    principal: str
    expiry_ms: int


class TokenError(PenstockError):
    """Raised for a token that is malformed, wrongly signed, not for this broker, or not valid now."""


class TokenClaims(NamedTuple):
    """The claims that a listener requires in a token. `skew_s` is the allowed clock skew in seconds."""

    subject_claim: str
    issuer: str | None
    audiences: frozenset[str]
    skew_s: float

    def check(self, claims: Mapping[str, Any], now_s: float) -> GoodToken:
        """Check the claims of a token; return its principal and expiry.

        Raises:
            TokenError: a claim is missing or wrong.
        """
        expiry, issued, begin = claims.get("exp"), claims.get("iat"), claims.get("nbf")
        if not is_number(expiry) or not is_number(issued):
            raise TokenError("it has no exp or no iat that is a number")
        if now_s > expiry + self.skew_s:
            raise TokenError(f"it has expired {now_s - expiry:.0f} s ago")
        if issued > now_s + self.skew_s or (is_number(begin) and begin > now_s + self.skew_s):
            raise TokenError("it is not valid yet; do the clocks differ?")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenError("it has another issuer")
        given = claims.get("aud")
        audiences = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        if self.audiences and not self.audiences.intersection(
            each for each in audiences if isinstance(each, str)
        ):
            raise TokenError("it is for another audience")
        return GoodToken(principal_of(claims, self.subject_claim), int(expiry * 1000))


def principal_of(claims: Mapping[str, Any], claim: str) -> str:
    """Return the principal that a claim names.

    Raises:
        TokenError: the claim is missing, blank, not a string, or a string that UTF-8 cannot encode.
    """
    subject = claims.get(claim)
    if not isinstance(subject, str) or not subject.strip() or SURROGATES.search(subject):
        raise TokenError(f"its claim {claim} names no principal")
    return subject


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True if the value of a claim can be a time: a number of seconds from 0 to 10^15."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15


class Keys:
    """The public keys of an identity provider. `read` returns the text of its JSON Web Key Set."""

    def __init__(self, read: Callable[[], str], monotonic: Callable[[], float], refresh_s: float) -> None:
        self._read = read
        self._monotonic = monotonic
        self._refresh_s = refresh_s
        self._keys: dict[str, tuple[str, Any]] = {}
        self._read_at = 0.0
        self._is_reading = False

    def load(self) -> None:
        """Read the keys now.

        Raises:
            ConfigError: the keys cannot be read, or none of them can be used.
        """
        try:
            self._keys = _parse_keys(self._read())
        except (OSError, ValueError) as error:
            raise ConfigError(f"the keys of the identity provider cannot be read: {error}") from None
        self._read_at = self._monotonic()

    def find(self, key_id: str | None, kind: str) -> list[Any]:
        """Return the keys that may have signed a token: all of type `kind`, or only the one with `key_id`."""
        age_s = self._monotonic() - self._read_at
        if age_s > self._refresh_s or (key_id not in (None, *self._keys) and age_s > REFRESH_PAUSE_S):
            self._begin_reading()
        if key_id is None:
            return [key for type_, key in self._keys.values() if type_ == kind]
        type_, key = self._keys.get(key_id, ("", None))
        return [key] if type_ == kind else []

    def _begin_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=self._reload, name="penstock-jwks", daemon=True).start()

    def _reload(self) -> None:
        try:
            self.load()
        except ConfigError as error:
            self._read_at = self._monotonic() - self._refresh_s + REFRESH_PAUSE_S
            logger.error("%s; those read before stay in force", error)
        finally:
            self._is_reading = False


def _parse_keys(text: str) -> dict[str, tuple[str, Any]]:
    """Return a dict from key id to type and public key for the keys in a JSON Web Key Set.

    Raises:
        ValueError: the set has no usable key.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    found: dict[str, tuple[str, Any]] = {}
    document = json.loads(text)
    listed = document.get("keys") if isinstance(document, dict) else None
    for number, each in enumerate((listed or [])[:KEYS_MAX] if isinstance(listed, list) else []):
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        try:
            if each.get("kty") == "RSA":
                modulus, exponent = (int.from_bytes(base64url_decoded(each[part]), "big") for part in "ne")
                key: Any = rsa.RSAPublicNumbers(exponent, modulus).public_key()
            elif each.get("kty") == "EC":
                curve = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1}[each["crv"]]()
                x, y = (int.from_bytes(base64url_decoded(each[part]), "big") for part in "xy")
                key = ec.EllipticCurvePublicNumbers(x, y, curve).public_key()
            else:
                continue
        except (KeyError, ValueError, TypeError):
            continue
        found[str(each.get("kid", f"#{number}"))] = (each["kty"], key)
    if not found:
        raise ValueError("there is no RSA or EC key for signatures in it")
    return found


def jwt_parts(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the claims of a JWT, without a check of its signature.

    Raises:
        TokenError: the text is too long, does not have three parts, or header and claims are not JSON objects
        in base64.
    """
    parts = text.split(".")
    if len(text) > TOKEN_CHARACTERS_MAX or len(parts) != 3:
        raise TokenError("it is no JWT of three parts")
    try:
        header, claims = (json.loads(base64url_decoded(part)) for part in parts[:2])
    except (ValueError, RecursionError):
        raise TokenError("it is no JWT: a part is not base64 or not JSON") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise TokenError("it is no JWT that is understood")
    return header, claims


def verify(text: str, keys: Keys, claims: TokenClaims, now_s: float) -> GoodToken:
    """Check the signature and claims of a token; return its content.

    Raises:
        TokenError: the token is not valid; the message has the reason, and no part of the token.
    """
    header, body = jwt_parts(text)
    signed, _, last = text.rpartition(".")
    try:
        signature = base64url_decoded(last)
    except ValueError:
        raise TokenError("it is no JWT: its signature is not base64") from None
    if "crit" in header:
        raise TokenError("it is no JWT that is understood")
    algorithm = ALGORITHMS.get(header["alg"]) if isinstance(header.get("alg"), str) else None
    if algorithm is None:
        raise TokenError(f"its algorithm is not among {', '.join(ALGORITHMS)}; unsigned tokens are refused")
    key_id = header.get("kid")
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > 1000):
        raise TokenError("the id of its key is malformed")
    data = signed.encode()
    if not any(_is_signed(key, *algorithm, data, signature) for key in keys.find(key_id, algorithm[0])):
        raise TokenError("no key of the provider fits its signature")
    return claims.check(body, now_s)


def _is_signed(key: Any, kind: str, hash_name: str, signed: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    digest = getattr(hashes, hash_name)()
    try:
        if kind == "RSA":
            key.verify(signature, signed, padding.PKCS1v15(), digest)
        else:
            half = (key.curve.key_size + 7) // 8
            if len(signature) != 2 * half:
                return False
            numbers = (int.from_bytes(part, "big") for part in (signature[:half], signature[half:]))
            key.verify(encode_dss_signature(*numbers), signed, ec.ECDSA(digest))
    except InvalidSignature:
        return False
    return True


def validator_of(settings: BrokerSecuritySettings, clock: Clock) -> Callable[[str], GoodToken]:
    """Return a function that checks the tokens of a listener.

    Raises:
        ConfigError: the settings name no source of keys for signatures, or the keys cannot be read.
        MissingDependencyError: `cryptography` is not installed.
    """
    url = settings.text(JWKS_URL, "OAUTHBEARER")
    if not url:
        raise ConfigError(
            f"listener {settings.listener} offers OAUTHBEARER: set"
            f" {JWKS_URL}, since without keys any token could be forged; for tests,"
            " the option unsecuredLoginStringClaim_sub in its oauthbearer.sasl.jaas.config has it take"
            " tokens without a signature"
        )
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "OAUTHBEARER needs cryptography; install it with: pip install 'penstock[security]'"
        ) from None

    def text(name: str) -> str | None:
        return settings.text(f"sasl.oauthbearer.{name}", "OAUTHBEARER")

    audiences = [part.strip() for part in (text("expected.audience") or "").split(",") if part.strip()]
    claims = TokenClaims(
        text("sub.claim.name") or "sub",
        text("expected.issuer") or None,
        frozenset(audiences),
        float(text("clock.skew.seconds") or 0),
    )
    for claim, is_checked in (("audience", audiences), ("issuer", claims.issuer)):
        allowed = text(f"allow.unverified.{claim}") == "true"
        if not is_checked and not allowed:
            logger.warning(
                "listener %s accepts tokens of any %s: set sasl.oauthbearer.expected.%s, or, if that is"
                " meant, sasl.oauthbearer.allow.unverified.%s=true; Apache Kafka 4.4 requires one of them",
                *(settings.listener, claim, claim, claim),
            )
    refresh_s = settings.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms", "OAUTHBEARER") / 1000
    keys = Keys(_reader_of(url), clock.monotonic, refresh_s)
    keys.load()
    return lambda token: verify(token, keys, claims, clock.now_ms() / 1000)


def _reader_of(url: str) -> Callable[[], str]:
    """Return a function that reads a key set from a file or by https; refuse http, which can be forged."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.scheme == "file":
        path = unquote(parts.path)

        def read_file() -> str:
            with open(path, encoding="utf-8") as file:
                return file.read(KEYS_BYTES_MAX)

        return read_file
    if parts.scheme != "https":
        raise ConfigError(f"{JWKS_URL}: write https://HOST/PATH or file:///PATH")

    def fetch() -> str:
        from urllib.request import urlopen

        with urlopen(url, timeout=FETCH_TIMEOUT_S) as response:
            data: bytes = response.read(KEYS_BYTES_MAX)
        return data.decode()

    return fetch
