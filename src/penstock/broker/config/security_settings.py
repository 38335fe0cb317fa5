"""Security settings: TLS, SASL, authorization and delegation tokens, with Kafka's names and defaults.

Most of them can be set per listener: ``listener.name.NAME.SETTING`` overrides the plain name, and for SASL
``listener.name.NAME.MECHANISM.SETTING`` overrides both. They are read when a listener or an authorizer needs
them: a broker without security imports nothing of this module.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.security.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT, NUMBER, BOOLEAN, SECRET = "text", "number", "boolean", "secret"


class SecurityKey(NamedTuple):
    """The definition of one security setting: type, default (None without one), and description."""

    type: str
    default: str | None
    doc: str


JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"

KEYS: dict[str, SecurityKey] = {
    "allow.everyone.if.no.acl.found": SecurityKey(
        BOOLEAN, "false", "Whether all may use what no entry is about, the cluster included."
    ),
    "authorizer.class.name": SecurityKey(
        TEXT, "", "Kafka's StandardAuthorizer (or an older name of it) switches access control on."
    ),
    "connection.failed.authentication.delay.ms": SecurityKey(
        NUMBER, "100", "How long a failed login waits for its answer, which slows down guessing."
    ),
    "connections.max.reauth.ms": SecurityKey(
        NUMBER, "0", "How long a session lasts until its client must authenticate itself again; 0: no end."
    ),
    "delegation.token.expiry.check.interval.ms": SecurityKey(
        NUMBER, "3600000", "How often delegation tokens that have expired are removed."
    ),
    "delegation.token.expiry.time.ms": SecurityKey(
        NUMBER, "86400000", "How long a delegation token lasts until it must be renewed."
    ),
    "delegation.token.max.lifetime.ms": SecurityKey(
        NUMBER, "604800000", "How long a delegation token lasts however often it is renewed."
    ),
    "delegation.token.secret.key": SecurityKey(
        SECRET, None, "Secret that makes delegation tokens; without it there are none."
    ),
    "sasl.enabled.mechanisms": SecurityKey(
        TEXT,
        "GSSAPI",
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI; what a SASL listener offers.",
    ),
    "sasl.jaas.config": SecurityKey(
        SECRET,
        None,
        "Users of PLAIN, as user_NAME=PASSWORD; keyTab and principal of GSSAPI; unsecuredValidator options"
        " of OAUTHBEARER; only behind listener.name.NAME.MECHANISM.",
    ),
    "sasl.kerberos.principal.to.local.rules": SecurityKey(
        TEXT, "DEFAULT", "From a principal of Kerberos to the name of a user."
    ),
    "sasl.oauthbearer.allow.unverified.audience": SecurityKey(
        BOOLEAN, "false", "Whether tokens of any audience are meant to be accepted, if none is expected."
    ),
    "sasl.oauthbearer.allow.unverified.issuer": SecurityKey(
        BOOLEAN, "false", "Whether tokens of any issuer are meant to be accepted, if none is expected."
    ),
    "sasl.oauthbearer.clock.skew.seconds": SecurityKey(
        NUMBER, "30", "By how much the clock of an identity provider may differ."
    ),
    "sasl.oauthbearer.expected.audience": SecurityKey(
        TEXT, None, "Audiences, one of which tokens must have."
    ),
    "sasl.oauthbearer.expected.issuer": SecurityKey(TEXT, None, "The issuer that tokens must have."),
    JWKS_URL: SecurityKey(
        TEXT, None, "Where the provider's keys are, by https or file; needed for tokens with a signature."
    ),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": SecurityKey(
        NUMBER, "3600000", "How often the provider's keys are read again."
    ),
    "sasl.oauthbearer.scope.claim.name": SecurityKey(TEXT, "scope", "The claim with the scopes of a token."),
    "sasl.oauthbearer.sub.claim.name": SecurityKey(TEXT, "sub", "The claim that names the principal."),
    "sasl.server.callback.handler.class": SecurityKey(
        TEXT,
        None,
        "Kafka's OAuthBearerUnsecuredValidatorCallbackHandler has tests use tokens without a signature.",
    ),
    "sasl.server.max.receive.size": SecurityKey(NUMBER, "524288", "The longest frame before authentication."),
    "ssl.allow.dn.changes": SecurityKey(
        BOOLEAN, "false", "Whether a renewed certificate may have another subject."
    ),
    "ssl.allow.san.changes": SecurityKey(
        BOOLEAN, "false", "Whether a renewed certificate may lack host names that the older one has."
    ),
    "ssl.cipher.suites": SecurityKey(TEXT, None, "Cipher suites, by the names of Java or OpenSSL."),
    "ssl.client.auth": SecurityKey(TEXT, "none", "none, requested or required: certificates of clients."),
    "ssl.enabled.protocols": SecurityKey(TEXT, "TLSv1.2,TLSv1.3", "TLSv1.2, TLSv1.3, or both."),
    "ssl.key.password": SecurityKey(SECRET, None, "Password of the private key."),
    "ssl.keystore.certificate.chain": SecurityKey(SECRET, None, "Certificate and chain as PEM text."),
    "ssl.keystore.key": SecurityKey(SECRET, None, "Private key as PEM text."),
    "ssl.keystore.location": SecurityKey(TEXT, None, "PEM, PKCS12 or JKS file with key and certificate."),
    "ssl.keystore.password": SecurityKey(SECRET, None, "Password of the key store."),
    "ssl.keystore.type": SecurityKey(TEXT, None, "PEM, PKCS12 or JKS; detected from the file."),
    "ssl.principal.mapping.rules": SecurityKey(
        TEXT, "DEFAULT", "From the subject of a certificate to the name of a principal."
    ),
    "ssl.truststore.certificates": SecurityKey(SECRET, None, "CAs of clients as PEM text."),
    "ssl.truststore.location": SecurityKey(TEXT, None, "PEM, PKCS12 or JKS file with CAs of clients."),
    "ssl.truststore.password": SecurityKey(SECRET, None, "Password of the trust store."),
    "ssl.truststore.type": SecurityKey(TEXT, None, "PEM, PKCS12 or JKS; detected from the file."),
    "super.users": SecurityKey(TEXT, "", "Principals that may do everything, separated by semicolons."),
}
"""A dict from name to definition for the security settings that have an effect."""

IDLE = frozenset(
    (
        "early.start.listeners",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "security.inter.broker.protocol",
        "ssl.endpoint.identification.algorithm",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.trustmanager.algorithm",
    )
)
"""Security settings of Apache Kafka that are ignored, because that does not weaken the broker."""

_PROTECTING = ("ssl.", "sasl.", "authorizer.", "security.", "super.users", "allow.everyone.if.no.acl.found")
"""Prefixes of security settings. The broker refuses an unknown setting whose name has one of them."""

HANDLER_CLASS = "sasl.server.callback.handler.class"

UNSECURED_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
)
"""The Java classes that accept OAUTHBEARER tokens without a signature."""

_CLASSES: dict[str, tuple[str, ...]] = {
    "principal.builder.class": (
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    ),
    "sasl.oauthbearer.jwt.validator.class": (
        "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    ),
    HANDLER_CLASS: (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    ),
    "ssl.engine.factory.class": ("org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",),
}
"""A dict from setting to Java class names. The settings name classes that control access; Penstock has
equivalents of the listed classes only.
"""

PER_MECHANISM = frozenset(
    name
    for name in KEYS
    if name.startswith(("sasl.oauthbearer.", "sasl.kerberos."))
    or name in ("sasl.jaas.config", "connections.max.reauth.ms", HANDLER_CLASS)
)
"""Settings that can be set per SASL mechanism, with the mechanism's name as a prefix."""

_LISTENER = re.compile(r"listener\.name\.([^.]+)\.(.+)")
_MECHANISM = re.compile(r"(plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.(.+)")


def base_name(name: str) -> str | None:
    """Return the name of a security setting without listener and mechanism; None for any other setting."""
    match = _LISTENER.fullmatch(name)
    rest = match[2] if match is not None else name
    mechanism = _MECHANISM.fullmatch(rest)
    if mechanism is not None:
        return mechanism[2] if mechanism[2] in PER_MECHANISM else None
    return rest if rest in KEYS or rest in IDLE else None


def refuse_unprotected(name: str, setting: str, text: str, *, is_known: bool) -> None:
    """Refuse a setting that this broker cannot enforce and that would leave it less protected.

    `setting` is the name without listener prefix.

    Raises:
        ConfigError: the setting names a Java class that controls access, or its name is unknown and has a
        prefix of security settings.
    """
    _refuse_other_class(name, setting, text)
    if setting.startswith(_PROTECTING) and not is_known:
        raise ConfigError(
            f"{name} asks for protection that this broker does not have; remove it"
            f"{did_you_mean(setting, (*KEYS, *IDLE))}"
        )


def _refuse_other_class(name: str, setting: str, text: str) -> None:
    """Raise ConfigError if a setting names a Java class for access control that has no equivalent."""
    match = _MECHANISM.fullmatch(setting)
    mechanism, base = (None, setting) if match is None else (match[1], match[2])
    classes = _CLASSES.get(base)
    if base == HANDLER_CLASS and mechanism in (None, "oauthbearer"):
        classes = (*_CLASSES[base], *UNSECURED_HANDLERS)
    if classes is not None and text.strip() not in ("", *classes):
        raise ConfigError(f"{name}: the class {text} cannot be loaded, which protects the broker; remove it")


def check(name: str, text: str) -> bool:
    """Check a security setting; return False if the name is not a security setting.

    Raises:
        ConfigError: the value is invalid, or names a Java class for access control that has no equivalent.
        The message does not quote the value of a secret.
    """
    base = base_name(name)
    if base is None:
        return False
    key = KEYS.get(base)
    if key is None:
        return True
    if base in _CLASSES:
        listener = _LISTENER.fullmatch(name)
        _refuse_other_class(name, name if listener is None else listener[2], text)
    is_wrong = (key.type == NUMBER and not text.strip().isdecimal()) or (
        key.type == BOOLEAN and text.strip().lower() not in ("true", "false")
    )
    if is_wrong:
        expected = "a whole number" if key.type == NUMBER else "true or false"
        raise ConfigError(f"Invalid value {text} for configuration {name}: expected {expected}")
    return True


def is_secret(name: str) -> bool:
    """Return True if the value of a setting must never be shown."""
    base = base_name(name)
    return base in KEYS and KEYS[base].type == SECRET


class SettingTexts(Protocol):
    """The broker's configuration as this module reads it: dicts from name to text, by precedence."""

    @property
    def dynamic(self) -> Mapping[str, str]: ...

    @property
    def dynamic_defaults(self) -> Mapping[str, str]: ...

    @property
    def settings(self) -> Mapping[str, str]: ...


class BrokerSecuritySettings:
    """The security settings of a broker, or of one of its listeners."""

    def __init__(self, config: SettingTexts, listener: str | None = None) -> None:
        self._config = config
        self.listener = listener

    def text(self, name: str, mechanism: str | None = None, *, inherits: bool = True) -> str | None:
        """Return the effective value of a setting, or None.

        In decreasing order of precedence, the value is the one for listener and mechanism, for the listener,
        for the plain name, or the default. If `inherits` is False, the plain name is not looked up.
        """
        names = []
        behind_mechanism = f"{mechanism.lower()}.{name}" if mechanism is not None else None
        if self.listener is not None:
            prefix = f"listener.name.{self.listener.lower()}."
            names += [prefix + each for each in (behind_mechanism, name) if each is not None]
        if behind_mechanism is not None:
            names.append(behind_mechanism)
        if inherits:
            names.append(name)
        config = self._config
        for each in names:
            for texts in (config.dynamic, config.dynamic_defaults, config.settings):
                if each in texts:
                    return texts[each]
        return KEYS[name].default

    def integer(self, name: str, mechanism: str | None = None) -> int:
        """Return the value of a numeric setting; return 0 if it has no value."""
        return int(self.text(name, mechanism) or 0)

    def boolean(self, name: str) -> bool:
        """Return the value of a boolean setting; return False if it has no value."""
        return (self.text(name) or "").strip().lower() == "true"

    def secret(self, name: str, mechanism: str | None = None, *, inherits: bool = True) -> Secret | None:
        """Return the value of a secret; replace ``${env:NAME}`` and ``${file:/path}`` with their values.

        Raises:
            ConfigError: the variable or file does not exist.
        """
        from penstock.security.secrets import resolved

        text = self.text(name, mechanism, inherits=inherits)
        return None if text is None else resolved(text)
