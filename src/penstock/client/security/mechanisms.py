"""The client's side of each SASL mechanism, without I/O: gets challenges, returns tokens."""

from __future__ import annotations

from typing import Protocol

from penstock.errors import AuthenticationError
from penstock.security.secrets import Secret


class Mechanism(Protocol):
    """One authentication with a SASL mechanism.

    If `is_slow`, calls may take milliseconds, and run in a thread.
    """

    name: str
    is_slow: bool

    @property
    def is_silent_at_end(self) -> bool:
        """True if a server with raw tokens sends no response to the last token."""
        ...

    def initial(self) -> bytes:
        """Return the first token to send."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the token that answers a challenge, or None after the last. Raises AuthenticationError."""
        ...

    def hint(self) -> str:
        """Return possible causes, for an error message, if the broker refuses without a reason."""
        ...


class Plain:
    """The mechanism PLAIN (RFC 4616): the password itself, which only TLS protects."""

    name = "PLAIN"
    is_slow = False
    is_silent_at_end = False

    def __init__(self, username: str, password: Secret) -> None:
        self._username = username
        self._password = password

    def initial(self) -> bytes:
        return f"\0{self._username}\0{self._password.reveal()}".encode("utf-8", "surrogatepass")

    def respond(self, challenge: bytes) -> bytes | None:
        return None

    def hint(self) -> str:
        return f"is the password of {self._username!r} right?"


class Scram:
    """The mechanisms SCRAM-SHA-256 and SCRAM-SHA-512, in which the broker proves its identity, too."""

    is_slow = True
    is_silent_at_end = False

    def __init__(self, name: str, username: str, password: Secret, *, is_token: bool = False) -> None:
        from penstock.security.scram import ScramClient

        self.name = name
        self._username = username
        self._is_token = is_token
        extensions = {"tokenauth": "true"} if is_token else None
        self._half = ScramClient(name, username, password, extensions=extensions)
        self._is_proved = False

    def initial(self) -> bytes:
        return self._half.first()

    def respond(self, challenge: bytes) -> bytes | None:
        if not self._is_proved:
            self._is_proved = True
            return self._half.final(challenge)
        self._half.verify(challenge)
        return None

    def hint(self) -> str:
        if self._is_token:
            return f"is delegation token {self._username!r} known, not expired, and its hmac right?"
        return (
            f"is the password right, does user {self._username!r} exist, and has it a credential for "
            f"{self.name}? (the broker's error is the same for all of these)"
        )


class OAuthBearer:
    """The mechanism OAUTHBEARER (RFC 7628), with a token that was fetched before."""

    name = "OAUTHBEARER"
    is_slow = False
    is_silent_at_end = False

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._refusal = ""

    def initial(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        from penstock.security.oauth import DUMMY_ANSWER, refusal_of

        if self._refusal:
            raise AuthenticationError(f"the broker refuses the token: {self._refusal}")
        self._refusal = refusal_of(challenge)
        return DUMMY_ANSWER

    def hint(self) -> str:
        said = f"the broker says {self._refusal}; " if self._refusal else ""
        return f"{said}is the token still valid, and meant for this cluster (audience, scope, issuer)?"


class Gssapi:
    """The mechanism GSSAPI (RFC 4752): the library `gssapi`, with the Kerberos tickets of this process."""

    name = "GSSAPI"
    is_slow = True

    def __init__(self, service: str, host: str, principal: str | None, keytab: str | None) -> None:
        try:
            import gssapi
        except ImportError as error:
            from penstock.common.extras import missing

            raise missing(error, "sasl.mechanism GSSAPI") from None
        self._gssapi = gssapi
        self._principal = principal or ""
        self._service = f"{service}@{host}"
        try:
            target = gssapi.Name(self._service, gssapi.NameType.hostbased_service)
            credentials = None
            if principal is not None or keytab is not None:
                name = store = None
                if principal is not None:
                    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
                if keytab is not None:
                    # Tickets of a keytab stay in memory: a file would be the one that `kinit` has written.
                    store = {"client_keytab": keytab, "ccache": f"MEMORY:penstock-{principal or keytab}"}
                credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
            self._context = gssapi.SecurityContext(name=target, usage="initiate", creds=credentials)
        except gssapi.exceptions.GSSError as error:
            raise self._error(error) from None
        self._is_wrapped = False

    @property
    def is_silent_at_end(self) -> bool:
        return self._is_wrapped

    def initial(self) -> bytes:
        return self._step(None)

    def respond(self, challenge: bytes) -> bytes | None:
        if self._is_wrapped:
            return None
        if not self._context.complete:
            return self._step(challenge)
        try:
            offer = self._context.unwrap(challenge).message
            if len(offer) != 4 or not offer[0] & 1:
                raise AuthenticationError(
                    "the broker requires an encryption of GSSAPI, which Kafka does not use"
                )
            self._is_wrapped = True
            answer = b"\x01" + offer[1:] + self._principal.encode()
            return bytes(self._context.wrap(answer, False).message)
        except self._gssapi.exceptions.GSSError as error:
            raise self._error(error) from None

    def _step(self, challenge: bytes | None) -> bytes:
        try:
            return bytes(self._context.step(challenge) or b"")
        except self._gssapi.exceptions.GSSError as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> AuthenticationError:
        said = " ".join(str(error).split())[:500]
        return AuthenticationError(
            f"Kerberos refuses for {self._service}: {said}; is there a ticket (klist)?"
        )

    def hint(self) -> str:
        return f"is {self._service} the broker's Kerberos name (sasl.kerberos.service.name, advertised host)?"


def check_library(mechanism: str) -> None:
    """Raise MissingDependencyError if a mechanism needs a library that is not installed."""
    if mechanism != "GSSAPI":
        return
    import importlib.util

    if importlib.util.find_spec("gssapi") is None:
        from penstock.common.extras import missing

        raise missing(ImportError(name="gssapi"), "sasl.mechanism GSSAPI")
