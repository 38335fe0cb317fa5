"""SCRAM-SHA-256 and SCRAM-SHA-512, for client and server: RFC 5802 and 7677, as Apache Kafka applies them.

- Bytes go in and out; nonces are arguments. Client and server accept each message once, and in order.
- A peer's message that breaks a rule raises ScramError, whose text contains no password and no key.
- Proofs and signatures are compared in constant time. The client accepts no server without its signature.

Differences from the RFC, as in Apache Kafka: passwords are raw UTF-8 (`saslprep` exists for peers that need
it), channel binding is not offered, and failures are reported by SaslAuthenticate and not by ``e=``. A
difference from Apache Kafka that follows the RFC: ``c=`` is compared with the header of the first message.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from collections.abc import Callable, Mapping
from enum import Enum

from penstock.errors import AuthenticationError
from penstock.security.secrets import Secret, revealed

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""A dict from SCRAM mechanism to the name of its hash in hashlib."""

ITERATIONS_MIN = 4096
"""The minimum number of iterations; client and server refuse fewer (RFC 7677)."""

ITERATIONS_MAX = 1_000_000
"""The maximum number of iterations that a client accepts, since the server chooses and the client computes
(CVE-2026-10143)."""

SERVER_ITERATIONS_MAX = 16_384
"""The maximum number of iterations of a credential that Apache Kafka accepts for storage."""

MESSAGE_BYTES_MAX = 64 << 10
"""The maximum size in bytes of a message that client or server reads."""

NONCE_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
NONCE_LENGTH = 26
"""The length of a nonce: 26 characters out of 36 are 134 random bits; Apache Kafka uses 130."""

NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
SASL_NAME = re.compile(r"(?:[^\x00,=]|=2C|=3D)+")
EXTENSION = re.compile(r"([a-zA-Z]+)=([^\x00,]*)")
NUMBER = re.compile(r"[1-9][0-9]{0,9}")


class ScramError(AuthenticationError):
    """Raised if a message of the peer breaks the rules of SCRAM, or proves a wrong password."""


class _Step(Enum):
    """The state of a SCRAM exchange: which message the client or server expects next."""

    FIRST = "the first message"
    CREDENTIAL = "the user's credential"
    FINAL = "the proof, or what it is made of"
    SIGNATURE = "the server's signature"
    DONE = "nothing"
    FAILED = "nothing, since it failed"


def new_nonce() -> str:
    """Return a random nonce of `NONCE_LENGTH` characters."""
    return "".join([secrets.choice(NONCE_CHARACTERS) for _ in range(NONCE_LENGTH)])


def saslprep(text: str) -> str:
    """Return a user name or password as RFC 4013 prepares it.

    Spaces are unified, the text is normalized by NFKC, and prohibited characters are refused. Apache Kafka
    and librdkafka do not do this; it never changes ASCII.

    Raises:
        ScramError: a character is prohibited or not assigned in Unicode 3.2, or directions are mixed.
    """
    mapped = "".join(
        [" " if stringprep.in_table_c12(each) else each for each in text if not stringprep.in_table_b1(each)]
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for each in prepared:
        if stringprep.in_table_a1(each) or any(prohibits(each) for prohibits in _PROHIBITED):
            raise ScramError("a user name or password holds a character that SASLprep prohibits")
    if any(map(stringprep.in_table_d1, prepared)):
        mixed = any(map(stringprep.in_table_d2, prepared))
        if mixed or not (stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])):
            raise ScramError("a user name or password mixes directions of writing, which SASLprep prohibits")
    return prepared


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def salted_password(mechanism: str, password: Secret | str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password: PBKDF2 of the password in UTF-8. 4,096 iterations take 2 ms."""
    data = revealed(password).encode("utf-8", "surrogatepass")
    return hashlib.pbkdf2_hmac(HASHES[mechanism], data, salt, iterations)


class ScramCredential:
    """The credential that a server stores for a password: salt, iterations, two keys. `repr` hides them."""

    __slots__ = ("iterations", "salt", "server_key", "stored_key")

    def __init__(self, salt: bytes, stored_key: bytes, server_key: bytes, iterations: int) -> None:
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations

    @classmethod
    def of_password(
        cls, mechanism: str, password: Secret | str, salt: bytes, iterations: int = ITERATIONS_MIN
    ) -> ScramCredential:
        """Return the credential for a password. This takes as long as `salted_password`."""
        salted = salted_password(mechanism, password, salt, iterations)
        return cls.of_salted_password(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted_password(
        cls, mechanism: str, salted: bytes, salt: bytes, iterations: int
    ) -> ScramCredential:
        """Return the credential for a salted password, as AlterUserScramCredentials carries it."""
        client_key = _mac(mechanism, salted, b"Client Key")
        stored_key = hashlib.new(HASHES[mechanism], client_key).digest()
        return cls(salt, stored_key, _mac(mechanism, salted, b"Server Key"), iterations)

    def __repr__(self) -> str:
        return f"<ScramCredential of {self.iterations} iterations>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScramCredential):
            return NotImplemented
        return (
            self.iterations == other.iterations
            and hmac.compare_digest(self.salt, other.salt)
            and hmac.compare_digest(self.stored_key, other.stored_key)
            and hmac.compare_digest(self.server_key, other.server_key)
        )

    def __hash__(self) -> int:
        return hash((self.salt, self.stored_key, self.server_key, self.iterations))


def new_salt() -> bytes:
    """Return a random salt of printable characters, as Apache Kafka's tools make it."""
    return new_nonce().encode()


class ScramClient:
    """The client's side of SCRAM. Call `first`, then `final` and `verify` with the server's two messages."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: Secret | str,
        *,
        nonce: str | None = None,
        extensions: Mapping[str, str] | None = None,
        iterations_max: int = ITERATIONS_MAX,
        prepare: Callable[[str], str] | None = None,
    ) -> None:
        """Begin an authentication of `username`.

        `extensions` follow the first message (``tokenauth=true``); `prepare` may be `saslprep`. Raises
        ScramError for a mechanism, user name, nonce or extension that cannot be sent.
        """
        _check_mechanism(mechanism)
        self._mechanism = mechanism
        plain = revealed(password)
        if not plain:
            raise ScramError(f"{mechanism} needs a password, and it is empty")
        self._password = Secret(prepare(plain) if prepare else plain)
        self._nonce = new_nonce() if nonce is None else nonce
        if not NONCE.fullmatch(self._nonce):
            raise ScramError("a nonce is printable ASCII without commas, and not empty")
        bare = f"n={_escaped(prepare(username) if prepare else username)},r={self._nonce}"
        for key, value in (extensions or {}).items():
            text = f"{key}={value}"
            if not EXTENSION.fullmatch(text) or len(key) == 1:
                raise ScramError(f"extension {key!r} cannot be sent: a name is letters, a value has no comma")
            bare += f",{text}"
        self._bare = bare
        self._iterations_max = iterations_max
        self._server_signature = b""
        self._step = _Step.FIRST

    def first(self) -> bytes:
        """Return the first message: user name and nonce."""
        self._take(_Step.FIRST, _Step.FINAL)
        return b"n,," + self._bare.encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the final message with the proof. It takes up to 0.5 s, depending on the iterations.

        Raises:
            ScramError: the server's message is malformed, does not continue the client's nonce, or demands
                too few or too many iterations.
        """
        self._take(_Step.FINAL, _Step.FAILED)
        text = _text_of(server_first)
        match = re.fullmatch(r"r=([^,]*),s=([^,]*),i=([^,]*)(?:,[a-zA-Z]=[^,\x00]+)*", text)
        if match is None:
            if text.startswith("e="):
                raise ScramError(f"the server refuses: {text[2:202]}")
            raise ScramError("the server's first message of SCRAM is malformed")
        nonce, salt_text, number = match.groups()
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce) or not NONCE.fullmatch(nonce):
            raise ScramError("the server's nonce does not continue the client's: is the answer replayed?")
        salt = _decoded(salt_text, "the server's salt")
        if not NUMBER.fullmatch(number):
            raise ScramError("the server's number of iterations is malformed")
        iterations = int(number)
        if iterations < ITERATIONS_MIN:
            raise ScramError(f"the server asks for {iterations} iterations, fewer than {ITERATIONS_MIN}")
        if iterations > self._iterations_max:
            raise ScramError(f"the server asks for {iterations} iterations, more than {self._iterations_max}")
        mechanism = self._mechanism
        salted = salted_password(mechanism, self._password, salt, iterations)
        client_key = _mac(mechanism, salted, b"Client Key")
        stored_key = hashlib.new(HASHES[mechanism], client_key).digest()
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._bare},{text},{without_proof}".encode()
        proof = _xor(client_key, _mac(mechanism, stored_key, message))
        server_key = _mac(mechanism, salted, b"Server Key")
        self._server_signature = _mac(mechanism, server_key, message)
        self._step = _Step.SIGNATURE
        return f"{without_proof},p={_encoded(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """Verify the server's signature.

        Raises:
            ScramError: the server refuses, or its signature is wrong: it does not have the credential.
        """
        self._take(_Step.SIGNATURE, _Step.FAILED)
        text = _text_of(server_final)
        match = re.fullmatch(r"([ev])=([^,]+)(?:,[a-zA-Z]=[^,\x00]+)*", text)
        if match is None:
            raise ScramError("the server's final message of SCRAM is malformed")
        if match[1] == "e":
            raise ScramError(f"the server refuses: {match[2][:200]}")
        signature = _decoded(match[2], "the server's signature")
        if not hmac.compare_digest(signature, self._server_signature):
            raise ScramError(
                "the server's signature is wrong: it does not know the password, and may be a forgery"
            )
        self._step = _Step.DONE

    @property
    def is_done(self) -> bool:
        """True after the server's signature was verified."""
        return self._step is _Step.DONE

    def _take(self, wanted: _Step, following: _Step) -> None:
        if self._step is not wanted:
            raise ScramError("a message of SCRAM came twice or out of its turn")
        self._step = following


class ScramServer:
    """The server's side of SCRAM. Call `receive_first`, `challenge` with a credential, `receive_final`.

    After `receive_first`, `username` and `is_token` identify the credential. After `receive_final`, `is_done`
    is True if the client has the password.
    """

    def __init__(self, mechanism: str, *, nonce: str | None = None) -> None:
        _check_mechanism(mechanism)
        self.mechanism = mechanism
        self.username = ""
        self.extensions: dict[str, str] = {}
        """The extensions after nonce and name in the first message, with keys in lower case."""
        self._nonce = new_nonce() if nonce is None else nonce
        if not NONCE.fullmatch(self._nonce):
            raise ScramError("a nonce is printable ASCII without commas, and not empty")
        self._header = ""
        self._bare = ""
        self._server_first = ""
        self._credential: ScramCredential | None = None
        self._step = _Step.FIRST

    @property
    def is_token(self) -> bool:
        """True if the user name is the id of a delegation token (extension ``tokenauth=true``)."""
        return self.extensions.get("tokenauth", "").lower() == "true"

    @property
    def is_done(self) -> bool:
        """True after the client has proved that it has the password."""
        return self._step is _Step.DONE

    def receive_first(self, client_first: bytes) -> None:
        """Process the client's first message.

        Raises:
            ScramError: the message is malformed, asks for channel binding, or to act as another user.
        """
        self._take(_Step.FIRST)
        text = _text_of(client_first)
        if text[:1] in ("y", "p"):
            raise ScramError("channel binding is not offered")
        match = re.fullmatch(
            r"(n,(?:a=([^,]+))?,)((?:m=[^,]*,)?n=([^,]*),r=([^,]*)((?:,.*)?))", text, re.DOTALL
        )
        if match is None:
            raise ScramError("the client's first message of SCRAM is malformed")
        header, authorization, bare, name, nonce, rest = match.groups()
        if bare.startswith("m="):
            raise ScramError("the client's first message demands an extension that is not known")
        username = _unescaped(name)
        if authorization is not None and _unescaped(authorization) != username:
            raise ScramError("the client asks for an authorization id that is different from its user name")
        if not NONCE.fullmatch(nonce):
            raise ScramError("the client's nonce is malformed")
        for part in rest.split(",")[1:]:
            extension = EXTENSION.fullmatch(part)
            if extension is None or extension[1] == "m":
                raise ScramError("an extension of the client's first message is malformed")
            self.extensions[extension[1].lower()] = extension[2]
        self.username = username
        self._header = header
        self._bare = bare
        self._nonce = nonce + self._nonce
        self._step = _Step.CREDENTIAL

    def challenge(self, credential: ScramCredential) -> bytes:
        """Return the server's first message. For an unknown user, pass a `fake_credential`.

        Raises ScramError for a credential of fewer iterations than `ITERATIONS_MIN`.
        """
        self._take(_Step.CREDENTIAL)
        if credential.iterations < ITERATIONS_MIN:
            raise ScramError(f"the credential has fewer than {ITERATIONS_MIN} iterations")
        self._credential = credential
        self._server_first = f"r={self._nonce},s={_encoded(credential.salt)},i={credential.iterations}"
        self._step = _Step.FINAL
        return self._server_first.encode()

    def receive_final(self, client_final: bytes) -> bytes:
        """Check the client's proof; return the server's final message, with its signature.

        Raises:
            ScramError: the message is malformed, belongs to another exchange, or proves a wrong password.
        """
        self._take(_Step.FINAL)
        credential = self._credential
        assert credential is not None
        text = _text_of(client_final)
        match = re.fullmatch(r"(c=([^,]*),r=([^,]*)),p=([^,]*)", text)
        if match is None:
            raise ScramError("the client's final message of SCRAM is malformed")
        without_proof, binding, nonce, proof_text = match.groups()
        if not hmac.compare_digest(_decoded(binding, "the channel binding"), self._header.encode()):
            raise ScramError("the client's final message repeats another header than it began with")
        if not hmac.compare_digest(nonce.encode(), self._nonce.encode()):
            raise ScramError("the client's final message has another nonce: is it replayed?")
        proof = _decoded(proof_text, "the client's proof")
        message = f"{self._bare},{self._server_first},{without_proof}".encode()
        signature = _mac(self.mechanism, credential.stored_key, message)
        if len(proof) != len(signature):
            raise ScramError("the client's proof has another length than the hash")
        stored_key = hashlib.new(HASHES[self.mechanism], _xor(proof, signature)).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise ScramError("the client's proof is wrong")
        self._step = _Step.DONE
        return f"v={_encoded(_mac(self.mechanism, credential.server_key, message))}".encode()

    def _take(self, wanted: _Step) -> None:
        """Check that the state is `wanted`; set the state FAILED until the caller has completed the step."""
        step, self._step = self._step, _Step.FAILED
        if step is not wanted:
            raise ScramError("a message of SCRAM came twice or out of its turn")


def _check_mechanism(mechanism: str) -> None:
    if mechanism not in HASHES:
        raise ScramError(f"{mechanism!r} is no mechanism of SCRAM: there are {', '.join(HASHES)}")


def _text_of(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise ScramError(f"a message of SCRAM has more than {MESSAGE_BYTES_MAX} bytes")
    try:
        return bytes(message).decode()
    except UnicodeDecodeError:
        raise ScramError("a message of SCRAM is not UTF-8 text") from None


def _escaped(name: str) -> str:
    if not name or "\0" in name:
        raise ScramError("a user name is not empty and holds no NUL")
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    if not SASL_NAME.fullmatch(name):
        raise ScramError("a user name is malformed: ',' is written =2C and '=' is written =3D")
    return name.replace("=2C", ",").replace("=3D", "=")


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str, what: str) -> bytes:
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, ValueError):
        raise ScramError(f"{what} is not base64") from None
    if not data:
        raise ScramError(f"{what} is empty")
    return data


def _mac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes([a ^ b for a, b in zip(left, right, strict=True)])


def base36(data: bytes) -> str:
    """Return `NONCE_LENGTH` characters from the alphabet of nonces, computed from the bytes of a digest."""
    number = int.from_bytes(data, "big")
    digits = []
    for _ in range(NONCE_LENGTH):
        number, digit = divmod(number, 36)
        digits.append(NONCE_CHARACTERS[digit])
    return "".join(digits)
