"""SASL GSSAPI at the broker (RFC 4752), as Kafka uses it: for authentication, without encryption.

Needs the library `gssapi` (the extra ``penstock[kerberos]``) and a keytab with the key of the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.security.kerberos_names import NameRule, parse_name_rules, short_name
from penstock.security.sasl_mechanisms import AuthenticationFailed, Identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.config.security_settings import BrokerSecuritySettings

GSSAPI = "GSSAPI"

_OFFER = b"\x01\x00\x00\x00"
"""The offer of security layers (RFC 4752): only "no security layer", and 0 as the largest wrapped message."""


class KerberosService:
    """The Kerberos service of one listener: its key, and the rules that map Kerberos names to principals.

    Raises:
        ConfigError: the keytab cannot be read, or a rule is malformed.
        MissingDependencyError: the library is missing.
    """

    def __init__(self, settings: BrokerSecuritySettings, note: Callable[[str], object]) -> None:
        try:
            import gssapi
        except ImportError as error:
            from penstock.common.extras import missing

            raise missing(error, "GSSAPI, the default of sasl.enabled.mechanisms,") from None
        self.gssapi = gssapi
        self.note = note
        self.rules: list[NameRule] = parse_name_rules(
            settings.text("sasl.kerberos.principal.to.local.rules") or ""
        )
        options = _jaas_options(settings)
        keytab, principal = options.get("keytab"), options.get("principal")
        try:
            name = None
            if principal is not None:
                name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            store = {"keytab": keytab} if keytab is not None else None
            self.credentials = gssapi.Credentials(name=name, usage="accept", store=store)
        except gssapi.exceptions.GSSError as error:
            said = " ".join(str(error).split())[:500]
            raise ConfigError(
                f"listener {settings.listener}: GSSAPI has no key: {said}; name keyTab and principal in "
                "sasl.jaas.config behind listener and mechanism"
            ) from None


def _jaas_options(settings: BrokerSecuritySettings) -> dict[str, str]:
    """Return the options of Krb5LoginModule in the JAAS setting, with names in lower case."""
    from penstock.security.jaas import parse_jaas

    text = settings.secret("sasl.jaas.config", GSSAPI, inherits=False)
    if text is None:
        return {}
    return {name.lower(): value.reveal() for name, value in parse_jaas(text.reveal()).options.items()}


class GssapiExchange:
    """One GSSAPI authentication: Kerberos tokens, the broker's offer of layers (none), the client's choice.

    If Kerberos refuses a client, the reason is logged, and the client gets a general message.
    """

    def __init__(self, acceptor: KerberosService) -> None:
        self.identity: Identity | None = None
        self._acceptor = acceptor
        gssapi = acceptor.gssapi
        self._context: Any = gssapi.SecurityContext(creds=acceptor.credentials, usage="accept")
        self._has_offered = False

    def step(self, token: bytes) -> bytes | None:
        """Process a token of the client; return the response token, or None after the client's last token."""
        try:
            return self._step(token)
        except self._acceptor.gssapi.exceptions.GSSError as error:
            self._acceptor.note(" ".join(str(error).split())[:500])
        except ValueError as error:
            self._acceptor.note(str(error))
        raise AuthenticationFailed

    def _step(self, token: bytes) -> bytes | None:
        context = self._context
        if not context.complete:
            answer = bytes(context.step(token) or b"")
            if answer or not context.complete:
                return answer
            return self._offer()
        if not self._has_offered:
            return self._offer()
        choice = context.unwrap(token).message
        if len(choice) < 4 or choice[0] != 1:
            raise ValueError("the client asks for a layer that was not offered, and that Kafka does not use")
        own_realm = str(context.target_name).rpartition("@")[2]
        self.identity = Identity(short_name(str(context.initiator_name), self._acceptor.rules, own_realm))
        return None

    def _offer(self) -> bytes:
        self._has_offered = True
        return bytes(self._context.wrap(_OFFER, False).message)
