"""`ListenerSecurity`: the security of one listener: TLS context, SASL mechanisms, users and principals."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Protocol

from penstock.broker.config.security_settings import BrokerSecuritySettings
from penstock.broker.session import ANONYMOUS, Principal
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, DecodeError
from penstock.security.sasl_server import LoginOutcome

if TYPE_CHECKING:
    import ssl

    from penstock.broker.config.security_settings import SettingTexts
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.security.image import SecurityImage
    from penstock.broker.security.kerberos import KerberosService
    from penstock.broker.security.principal_rules import PrincipalRule
    from penstock.broker.security.users import ListenerUsers
    from penstock.clock import Clock
    from penstock.common.failures import LimitedLog
    from penstock.security.sasl_mechanisms import Exchange, ValidateToken
    from penstock.security.tls_context import TlsSettings

logger = logger_named("penstock.broker")


class SecuredListener(Protocol):
    """The attributes of a listener that `ListenerSecurity` reads."""

    @property
    def name(self) -> str: ...

    @property
    def has_tls(self) -> bool: ...

    @property
    def has_sasl(self) -> bool: ...


class SecuredCluster(Protocol):
    """The interface of the cluster's metadata from which a listener gets users and secrets."""

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def security(self) -> SecurityImage: ...

    @property
    def setting_checks(self) -> list[Callable[[Mapping[str, str]], None]]: ...

    def login_secret(self) -> bytes: ...


class ListenerParts(Protocol):
    """The parts of the broker that `ListenerSecurity` uses."""

    @property
    def config(self) -> SettingTexts: ...

    @property
    def cluster(self) -> SecuredCluster: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def limited_log(self) -> LimitedLog: ...


USER = "User"


class LoginCounts:
    """Counters of login outcomes at one listener. A login is SASL, or TLS at a listener without SASL."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = dict.fromkeys(product(LoginOutcome, (False, True)), 0)
        """A dict from (outcome, is re-authentication) to the number of logins (KIP-368)."""

    def add(self, outcome: LoginOutcome, *, is_again: bool = False) -> None:
        """Count one login with this outcome; `is_again` marks a re-authentication."""
        self.counts[outcome, is_again] += 1


_FILES = ("ssl.keystore.location", "ssl.truststore.location")


class ListenerSecurity:
    """The TLS context, SASL mechanisms and users of a listener that is not PLAINTEXT.

    Raises:
        ConfigError: a setting is missing or malformed, or a file cannot be read.
    """

    def __init__(self, listener: SecuredListener, node: ListenerParts) -> None:
        self.listener = listener
        self.settings = BrokerSecuritySettings(node.config, listener.name)
        self._node = node
        self.logins = LoginCounts()
        self.tls: ssl.SSLContext | None = None
        """The TLS context of new connections; None without TLS."""
        self._rules: list[PrincipalRule] = []
        self._tls_state: object = None
        self._certificate = b""
        if listener.has_tls:
            from penstock.broker.security.principal_rules import parse_principal_rules

            self._rules = parse_principal_rules(self.settings.text("ssl.principal.mapping.rules") or "")
            self._tls_state = self._read_tls_state(self.settings)
            self.tls = self._make_context(self.settings)
            self._certificate = self._read_certificate(self.settings)
            node.cluster.setting_checks.append(self.check_settings)
        self.mechanisms: list[str] = []
        self.users: ListenerUsers | None = None
        self.validate_token: ValidateToken | None = None
        self._acceptor: KerberosService | None = None
        if listener.has_sasl:
            self._prepare_sasl()
        self.failure_delay_s = self.settings.integer("connection.failed.authentication.delay.ms") / 1000
        self.frame_bytes_max = self.settings.integer("sasl.server.max.receive.size")

    # --- SASL --------------------------------------------------------------------------------------------

    def _prepare_sasl(self) -> None:
        from penstock.broker.security.users import ListenerUsers, enabled_mechanisms, plain_users
        from penstock.security.sasl_mechanisms import OAUTHBEARER, PLAIN, SUPPORTED

        self.mechanisms = enabled_mechanisms(self.settings, SUPPORTED)
        passwords = plain_users(self.settings) if PLAIN in self.mechanisms else {}
        if PLAIN in self.mechanisms and not passwords:
            name = f"listener.name.{self.listener.name.lower()}.plain.sasl.jaas.config"
            logger.warning("listener %s has no users for PLAIN; set %s", self.listener.name, name)
        secret = partial(self.settings.secret, "delegation.token.secret.key")
        self.users = ListenerUsers(
            passwords, self._node.cluster.security, secret, self._node.cluster.login_secret()
        )
        if OAUTHBEARER in self.mechanisms:
            self.validate_token = self._make_validator()
        if "GSSAPI" in self.mechanisms:
            from penstock.broker.security.kerberos import KerberosService

            self._acceptor = KerberosService(self.settings, self._note_token)

    def _make_validator(self) -> ValidateToken:
        from penstock.broker.security.unsecured_tokens import unsecured_rules_of

        clock = self._node.clock
        rules = unsecured_rules_of(self.settings)
        if rules is not None:
            logger.warning(
                "listener %s takes tokens of OAUTHBEARER without a signature: any client can log in as any"
                " user; use it for tests only",
                self.listener.name,
            )
            return lambda token: rules.check(token, clock.now_ms())
        from penstock.broker.security.bearer_tokens import validator_of

        return validator_of(self.settings, clock)

    def begin_exchange(self, mechanism: str) -> Exchange:
        """Begin an authentication with one of `mechanisms`."""
        from penstock.security import sasl_mechanisms as mechanisms

        users = self.users
        assert users is not None
        if mechanism == mechanisms.PLAIN:
            return mechanisms.PlainExchange(users)
        if mechanism == mechanisms.OAUTHBEARER:
            assert self.validate_token is not None
            return mechanisms.BearerExchange(self.validate_token, self._note_token)
        if self._acceptor is not None and mechanism == "GSSAPI":
            from penstock.broker.security.kerberos import GssapiExchange

            return GssapiExchange(self._acceptor)
        return mechanisms.ScramExchange(mechanism, users, self._node.clock.now_ms)

    def _note_token(self, reason: str) -> None:
        self._node.limited_log.write(
            20, "refused tokens", "listener %s: a token is refused: %s", self.listener.name, reason
        )

    def lifetime_max_ms(self, mechanism: str) -> int:
        """Return `connections.max.reauth.ms`, the maximum session lifetime in ms, for a mechanism."""
        return self.settings.integer("connections.max.reauth.ms", mechanism)

    # --- TLS ---------------------------------------------------------------------------------------------

    def tls_settings(self, settings: BrokerSecuritySettings) -> TlsSettings:
        """Return the settings for a TLS context.

        Raises:
            ConfigError: the settings name no certificate.
        """
        from penstock.security.tls_context import TlsSettings

        name = self.listener.name.lower()
        keystore = settings.text("ssl.keystore.location")
        chain = settings.secret("ssl.keystore.certificate.chain")
        key = settings.secret("ssl.keystore.key")
        if keystore is None and (chain is None or key is None):
            raise ConfigError(
                f"listener {self.listener.name} has no certificate: set"
                f" listener.name.{name}.ssl.keystore.location, or ssl.keystore.certificate.chain and"
                " ssl.keystore.key"
            )
        # As in Apache Kafka, SASL_SSL asks for certificates only where that is set for the listener itself.
        asks = (settings.text("ssl.client.auth", inherits=not self.listener.has_sasl) or "none").lower()
        protocols = settings.text("ssl.enabled.protocols") or ""
        store = _is_pem(keystore, settings.text("ssl.keystore.type"))
        trust = settings.text("ssl.truststore.location")
        trusts_pem = _is_pem(trust, settings.text("ssl.truststore.type"))
        inline = settings.secret("ssl.truststore.certificates")
        return TlsSettings(
            ca=trust if trusts_pem else None,
            ca_inline=inline.reveal() if inline is not None else None,
            certificate=chain.reveal() if chain is not None else keystore if store else None,
            key=key,
            key_password=settings.secret("ssl.key.password"),
            keystore=None if store or chain is not None else keystore,
            keystore_type=settings.text("ssl.keystore.type"),
            keystore_password=settings.secret("ssl.keystore.password"),
            truststore=None if trusts_pem else trust,
            truststore_type=settings.text("ssl.truststore.type"),
            truststore_password=settings.secret("ssl.truststore.password"),
            client_auth=asks,
            versions=tuple(part.strip() for part in protocols.split(",") if part.strip()),
            ciphers=settings.text("ssl.cipher.suites") or None,
        )

    def _make_context(self, settings: BrokerSecuritySettings) -> ssl.SSLContext:
        from penstock.security.tls_context import server_context

        context = server_context(self.tls_settings(settings))
        # Session tickets would be two messages per handshake, which no Kafka client uses.
        context.num_tickets = 0
        return context

    def _read_certificate(self, settings: BrokerSecuritySettings) -> bytes:
        from penstock.security.tls_context import own_certificate

        return own_certificate(self.tls_settings(settings)) or b""

    def _check_successor(self, settings: BrokerSecuritySettings) -> bytes:
        """Return the certificate (DER) in the settings, after checking that it may replace the present one.

        Raises:
            ConfigError: the new certificate has another subject than the present one, or lacks some of its
            host names, and the settings do not allow that.
        """
        from penstock.broker.security.distinguished_names import alternative_names_of, subject_of

        made = self._read_certificate(settings)
        try:
            old, new = subject_of(self._certificate), subject_of(made)
            lost = alternative_names_of(self._certificate) - alternative_names_of(made)
        except DecodeError as error:
            raise ConfigError(f"the certificate cannot be compared with the older one: {error}") from None
        if old.casefold() != new.casefold() and not settings.boolean("ssl.allow.dn.changes"):
            raise ConfigError(
                f"the new certificate is that of {new!r}, the older one of {old!r};"
                " set ssl.allow.dn.changes=true if that is meant"
            )
        if lost and not settings.boolean("ssl.allow.san.changes"):
            raise ConfigError(
                f"the new certificate lacks {len(lost)} of the host names that the older one has;"
                " set ssl.allow.san.changes=true if that is meant"
            )
        return made

    def check_settings(self, texts: Mapping[str, str]) -> None:
        """Check settings that a client is about to set for this broker.

        Raises:
            ConfigError: the certificate in the settings for this listener cannot be read, or may not replace
            the present one.
        """
        config = self._node.cluster.config
        settings = BrokerSecuritySettings(
            config.with_dynamic(texts, config.dynamic_defaults), self.listener.name
        )
        if self._read_tls_state(settings) != self._tls_state:
            self._make_context(settings)
            self._check_successor(settings)

    def _read_tls_state(self, settings: BrokerSecuritySettings) -> object:
        """Return a value to detect changes: it differs if certificate settings or files have changed."""
        files = [settings.text(name) for name in _FILES]
        stats = []
        for path in files:
            try:
                stat = os.stat(path) if path else None
            except OSError:
                stat = None
            stats.append((path, stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino)))
        texts = [
            settings.text(name)
            for name in (
                "ssl.keystore.certificate.chain",
                "ssl.keystore.key",
                "ssl.key.password",
                "ssl.keystore.password",
                "ssl.truststore.certificates",
                "ssl.truststore.password",
                "ssl.client.auth",
                "ssl.allow.dn.changes",
                "ssl.allow.san.changes",
            )
        ]
        return stats, texts

    def renew_certificates(self) -> bool:
        """Reload certificates if files or settings have changed; return True if new ones are in use.

        Open connections keep their certificates. An error is logged, and the old certificate stays in use.
        """
        if self.tls is None:
            return False
        state = self._read_tls_state(self.settings)
        if state == self._tls_state:
            return False
        try:
            context = self._make_context(self.settings)
            self._certificate = self._check_successor(self.settings)
        except ConfigError as error:
            self._tls_state = state
            logger.error("listener %s keeps its certificate: %s", self.listener.name, error)
            return False
        self.tls, self._tls_state = context, state
        logger.info("listener %s has new certificates", self.listener.name)
        return True

    def principal_of(self, certificate: bytes | None) -> Principal | None:
        """Return the principal of a client's certificate (DER); None if no rule gives a name.

        Without a certificate, the principal is `ANONYMOUS`.
        """
        if certificate is None:
            return ANONYMOUS
        from penstock.broker.security.distinguished_names import subject_of
        from penstock.broker.security.principal_rules import principal_name

        try:
            name = principal_name(self._rules, subject_of(certificate))
        except DecodeError:
            return None
        return Principal(USER, name) if name else None


def _is_pem(path: str | None, kind: str | None) -> bool:
    """Return True if a key store is PEM, according to its type setting or, without one, its first bytes."""
    if path is None:
        return False
    if kind is not None:
        return kind.upper() == "PEM"
    try:
        with open(path, "rb") as file:
            return b"-----BEGIN" in file.read(64 << 10)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
