"""Security settings, under their names in Java, librdkafka and other clients, parsed into one form.

An unknown name, a malformed value, and settings that contradict each other are refused at once, with what to
do. No message quotes a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.client.security.settings import (
    PROTOCOLS,
    SUPPORTED_MECHANISMS,
    OAuthSettings,
    SecuritySettings,
)
from penstock.client.unknown_options import unknown_option
from penstock.common.logs import logger_named
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.security.secrets import Secret, resolved, revealed
from penstock.security.tls_context import PEM_BEGIN, TlsSettings

if TYPE_CHECKING:
    from penstock.client.security.unsecured_logins import UnsecuredLogin
    from penstock.security.jaas import LoginModule

log = logger_named("penstock.client")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value.strip()


def _secret(value: object) -> Secret:
    if not isinstance(value, (str, Secret)):
        raise ValueError("expected text")
    return resolved(revealed(value))


def _boolean(value: object) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise ValueError("expected true or false")


def _names(value: object) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError("expected names, separated by commas")
    return tuple(str(item).strip() for item in items if str(item).strip())


def _verified_host(value: object) -> bool:
    word = str(value).strip().lower()
    if word in ("https", "true"):
        return True
    if word in ("", "none", "false"):
        return False
    raise ValueError("expected https, or none (or nothing) to verify no host names")


def _milliseconds(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        raise ValueError("expected a number of milliseconds") from None
    if not 0 < number < 2**31:
        raise ValueError("expected a number of milliseconds above 0")
    return number


def _callback(value: object) -> Callable[..., Any]:
    method = value if callable(value) else getattr(value, "token", None)
    if not callable(method):
        raise ValueError("expected a function, or an object with a method token()")
    return method


def _as_is(value: object) -> Any:
    return value


def _extensions(value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    pairs = [part.partition("=") for part in _text(value).split(",") if part.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("expected key=value, separated by commas")
    return {key.strip(): item.strip() for key, _, item in pairs}


OPTIONS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "security.protocol": ("protocol", _text),
    "ssl.context": ("ssl_context", _as_is),
    # CAs
    "ssl.ca.location": ("ca", _text),
    "ssl.cafile": ("ca", _text),
    "ssl.ca.pem": ("ca_inline", _text),
    "ssl.truststore.location": ("truststore", _text),
    "ssl.truststore.type": ("truststore_type", _text),
    "ssl.truststore.password": ("truststore_password", _secret),
    "ssl.truststore.certificates": ("ca_inline", _text),
    "ssl.crl.location": ("crl", _text),
    "ssl.crlfile": ("crl", _text),
    # the client's own certificate
    "ssl.certificate.location": ("certificate", _text),
    "ssl.certfile": ("certificate", _text),
    "ssl.certificate.pem": ("certificate", _text),
    "ssl.keystore.certificate.chain": ("certificate", _text),
    "ssl.key.location": ("key", _secret),
    "ssl.keyfile": ("key", _secret),
    "ssl.key.pem": ("key", _secret),
    "ssl.keystore.key": ("key", _secret),
    "ssl.key.password": ("key_password", _secret),
    "ssl.password": ("key_password", _secret),
    "ssl.keystore.location": ("keystore", _text),
    "ssl.keystore.type": ("keystore_type", _text),
    "ssl.keystore.password": ("keystore_password", _secret),
    # protocols, and what is verified
    "ssl.endpoint.identification.algorithm": ("verify_host", _verified_host),
    "ssl.check.hostname": ("verify_host", _verified_host),
    "enable.ssl.certificate.verification": ("verify", _boolean),
    "ssl.enabled.protocols": ("versions", _names),
    "ssl.cipher.suites": ("ciphers", _text),
    "ssl.ciphers": ("ciphers", _text),
    "ssl.curves.list": ("curve", _text),
    # SASL
    "sasl.mechanism": ("mechanism", _text),
    "sasl.mechanisms": ("mechanism", _text),
    "sasl.username": ("username", _secret),
    "sasl.plain.username": ("username", _secret),
    "sasl.password": ("password", _secret),
    "sasl.plain.password": ("password", _secret),
    "sasl.jaas.config": ("jaas", _secret),
    # OAUTHBEARER
    "sasl.oauthbearer.token.provider": ("provider", _callback),
    "sasl.oauth.token.provider": ("provider", _callback),
    "oauth.cb": ("provider", _callback),
    "sasl.oauthbearer.config": ("provider_argument", _text),
    "sasl.oauthbearer.method": ("oauth_method", _text),
    "sasl.oauthbearer.token.endpoint.url": ("token_endpoint", _text),
    "sasl.oauthbearer.client.id": ("client_id", _text),
    "sasl.oauthbearer.client.credentials.client.id": ("client_id", _text),
    "sasl.oauthbearer.client.secret": ("client_secret", _secret),
    "sasl.oauthbearer.client.credentials.client.secret": ("client_secret", _secret),
    "sasl.oauthbearer.scope": ("scope", _text),
    "sasl.oauthbearer.extensions": ("extensions", _extensions),
    "sasl.oauthbearer.header.urlencode": ("is_header_urlencoded", _boolean),
    "enable.sasl.oauthbearer.unsecure.jwt": ("unsecured", _boolean),
    "sasl.login.connect.timeout.ms": ("connect_timeout_ms", _milliseconds),
    "https.ca.location": ("https_ca", _text),
    "https.ca.pem": ("https_ca", _text),
    # GSSAPI
    "sasl.kerberos.service.name": ("kerberos_service", _text),
    "sasl.kerberos.principal": ("kerberos_principal", _text),
    "sasl.kerberos.keytab": ("kerberos_keytab", _text),
}
"""The names of all settings with an effect, each with Penstock's own name for it, and its parser."""

INERT = frozenset(
    (
        "ssl.protocol",
        "ssl.provider",
        "ssl.providers",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
        "ssl.sigalgs.list",
        "ssl.ca.certificate.stores",
        "ssl.engine.location",
        "ssl.engine.id",
        "ssl.engine.factory.class",
        "security.providers",
        "sasl.login.class",
        "sasl.login.callback.handler.class",
        "sasl.client.callback.handler.class",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.buffer.seconds",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.kerberos.min.time.before.relogin",
    )
)
"""Settings that only a JVM or OpenSSL has. They are accepted, so that files can be shared, but have no
effect."""

TLS_FIELDS = frozenset(TlsSettings.__dataclass_fields__)


def parse_security(
    given: Mapping[str, object], prefix: str = "", spelt: Mapping[str, str] | None = None
) -> SecuritySettings | None:
    """Return the security settings given under dotted names; None for PLAINTEXT.

    In error messages, the `prefix` precedes the names. `spelt` maps dotted names to the names that the user
    wrote.

    Raises:
        ConfigError: an unknown name, a malformed value, or settings that contradict each other.
    """
    values, written = _read(given, prefix, spelt or {})
    protocol = values.pop("protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"option 'security.protocol' = {protocol!r}: expected one of {', '.join(PROTOCOLS)}"
            f"{did_you_mean(protocol, PROTOCOLS, 3, quoted=True)}"
        )
    if protocol == "PLAINTEXT":
        if written:
            log.warning(
                "%s has no effect: security.protocol is PLAINTEXT; is SSL or SASL_SSL meant?",
                ", ".join(sorted(written.values())),
            )
        return None
    tls = TlsSettings(**{name: value for name, value in values.items() if name in TLS_FIELDS})
    settings: dict[str, Any] = {"protocol": protocol, "tls": _checked_tls(tls, written), "given": dict(given)}
    if "ssl_context" in values:
        settings["ssl_context"] = values["ssl_context"]
    if protocol.startswith("SASL"):
        _read_sasl(values, settings)
    return SecuritySettings(**settings)


def _read(
    given: Mapping[str, object], prefix: str, names: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return two dicts from Penstock's name of a setting: to the parsed value, and to the name as given."""
    values: dict[str, Any] = {}
    spelt: dict[str, str] = {}
    for name, value in given.items():
        if name in INERT:
            continue
        known = OPTIONS.get(name)
        if known is None:
            raise unknown_option(names.get(name, name), [*OPTIONS, *INERT], prefix)
        key, parse = known
        if value is None:
            continue
        was_hidden = isinstance(value, Secret)
        if isinstance(value, Secret) and parse is not _secret:
            value = value.reveal()
        if key in values:
            raise ConfigError(
                f"options {spelt.get(key, key)!r} and {name!r} are two names for the same: give one"
            )
        try:
            values[key] = parse(value)
        except ConfigError as error:
            raise ConfigError(f"option {prefix + name!r}: {error}") from None
        except ValueError as error:
            quoted = "" if was_hidden or parse in (_secret, _callback, _as_is) else f" = {value!r}"
            raise ConfigError(f"option {prefix + name!r}{quoted}: {error}") from None
        if key != "protocol":
            spelt[key] = name
    return values, spelt


def _checked_tls(tls: TlsSettings, spelt: Mapping[str, str]) -> TlsSettings:
    if tls.keystore is not None and (tls.certificate is not None or tls.key is not None):
        raise ConfigError(
            f"options 'ssl.keystore.location' and {spelt.get('certificate') or spelt.get('key')!r}: "
            "certificate and key come from a store, or from elsewhere, not from both"
        )
    if tls.ca is not None and PEM_BEGIN not in tls.ca and tls.ca_inline is not None:
        raise ConfigError(f"options {spelt['ca']!r} and {spelt['ca_inline']!r}: give one source of CAs")
    for key in ("certificate", "ca_inline"):
        text = getattr(tls, key)
        if (
            text is not None
            and spelt[key].endswith((".pem", ".chain", ".certificates"))
            and PEM_BEGIN not in text
        ):
            raise ConfigError(f"option {spelt[key]!r}: a PEM text is expected (-----BEGIN CERTIFICATE-----)")
    return tls


def _read_sasl(values: Mapping[str, Any], settings: dict[str, Any]) -> None:
    jaas = None
    if "jaas" in values:
        from penstock.security.jaas import parse_jaas  # few need it, and its pattern takes 5 ms to compile

        jaas = parse_jaas(values["jaas"].reveal())
    mechanism = _mechanism(values.get("mechanism", ""), jaas)
    settings["mechanism"] = mechanism
    username, password = values.get("username"), values.get("password")
    if jaas is not None and mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        if username is not None or password is not None:
            raise ConfigError("options 'sasl.jaas.config' and 'sasl.username': give one of them")
        username, password = jaas.options.get("username"), jaas.options.get("password")
        settings["is_token"] = (jaas.text("tokenauth") or "").lower() == "true"
    if mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        if not username or not password:
            what = "sasl.username" if not username else "sasl.password"
            raise ConfigError(f"option {what!r} is missing (or in sasl.jaas.config): {mechanism} needs both")
        settings["username"], settings["password"] = username.reveal(), password
    elif mechanism == "OAUTHBEARER":
        settings["oauth"] = _oauth(values, jaas)
    elif mechanism == "GSSAPI":
        _read_kerberos(values, jaas, settings)


def _mechanism(given: str, jaas: LoginModule | None) -> str:
    if "," in given:
        raise ConfigError(f"option 'sasl.mechanism' = {given!r}: one name is expected")
    mechanism = given.upper()
    derived = None if jaas is None else jaas.mechanism
    if not mechanism:
        if derived is None:
            raise ConfigError(
                f"option 'sasl.mechanism' is missing: one of {', '.join(SUPPORTED_MECHANISMS)}; the broker's "
                "administrator can say which"
            )
        if derived == "SCRAM":
            raise ConfigError("option 'sasl.mechanism' is missing: SCRAM-SHA-256 or SCRAM-SHA-512?")
        log.info("sasl.mechanism is not set: %s follows from sasl.jaas.config", derived)
        mechanism = derived
    elif derived is not None and not mechanism.startswith(derived):
        raise ConfigError(
            f"option 'sasl.mechanism' = {mechanism!r}: sasl.jaas.config has the module of {derived}"
        )
    if mechanism == "AWS_MSK_IAM":
        raise ConfigError(
            "sasl.mechanism AWS_MSK_IAM is Java's; here, IAM works by OAUTHBEARER with a token callback: "
            "set sasl.mechanism=OAUTHBEARER and sasl.oauthbearer.token.provider (docs/how-to/security.md)"
        )
    if mechanism not in SUPPORTED_MECHANISMS:
        raise ConfigError(
            f"option 'sasl.mechanism' = {given!r}: expected one of {', '.join(SUPPORTED_MECHANISMS)}"
            f"{did_you_mean(mechanism, SUPPORTED_MECHANISMS, 3, quoted=True)}"
        )
    return mechanism


def _oauth(values: Mapping[str, Any], jaas: LoginModule | None) -> OAuthSettings:
    made: dict[str, Any] = {
        key: values[key]
        for key in ("provider", "provider_argument", "token_endpoint", "client_id", "client_secret", "scope",
                    "is_header_urlencoded")
        if key in values
    }  # fmt: skip
    extensions = dict(values.get("extensions", {}))
    if jaas is not None:
        made.setdefault("client_id", jaas.text("clientId"))
        made.setdefault("client_secret", jaas.options.get("clientSecret"))
        made.setdefault("scope", jaas.text("scope"))
        for key, value in jaas.options.items():
            if key.startswith("extension_"):
                extensions.setdefault(key.removeprefix("extension_"), value.reveal())
    made["unsecured"] = login = _unsecured(values, jaas)
    if login is not None:
        extensions = {**login.extensions, **extensions}
    if "https_ca" in values:
        made["ca"] = values["https_ca"]
    if "connect_timeout_ms" in values:
        made["connect_timeout_s"] = values["connect_timeout_ms"] / 1000
    settings = OAuthSettings(**made, extensions=extensions)
    if not (settings.provider or settings.token_endpoint or settings.unsecured):
        raise ConfigError(
            "OAUTHBEARER needs a source of tokens: sasl.oauthbearer.token.endpoint.url with client id and "
            "secret, or a callback as sasl.oauthbearer.token.provider"
        )
    if settings.token_endpoint and not settings.token_endpoint.startswith(("https://", "http://", "file:")):
        raise ConfigError("option 'sasl.oauthbearer.token.endpoint.url': expected https://… or file:/…")
    if settings.token_endpoint and settings.token_endpoint.startswith("http://"):
        host = urlsplit(settings.token_endpoint).hostname
        if host not in ("localhost", "127.0.0.1", "::1"):
            raise ConfigError(
                "option 'sasl.oauthbearer.token.endpoint.url': http would send the secret in the clear; "
                "expected https://"
            )
    if settings.token_endpoint and not settings.token_endpoint.startswith("file:") and not settings.client_id:
        raise ConfigError("option 'sasl.oauthbearer.client.id' is missing: the token endpoint asks for it")
    return settings


def _unsecured(values: Mapping[str, Any], jaas: LoginModule | None) -> UnsecuredLogin | None:
    """Return the login with unsigned tokens that the settings ask for, or None."""
    from penstock.client.security.unsecured_logins import asks_for_unsecured, login_of_jaas, login_of_text

    options = {} if jaas is None else jaas.options
    is_asked, switch = asks_for_unsecured(options), values.get("unsecured")
    if not is_asked and not switch:
        return None
    if switch is False:
        raise ConfigError(
            "sasl.jaas.config asks for tokens without a signature (unsecuredLogin…), and "
            "'enable.sasl.oauthbearer.unsecure.jwt' is false: remove one of them"
        )
    other = next((name for name in ("token_endpoint", "provider") if values.get(name)), None)
    if other is not None:
        what = "'sasl.oauthbearer.token.endpoint.url'" if other == "token_endpoint" else "a token callback"
        said = "sasl.jaas.config (unsecuredLogin…)" if is_asked else "'enable.sasl.oauthbearer.unsecure.jwt'"
        raise ConfigError(f"{said} makes tokens without a signature, and {what} gives tokens: remove one")
    if is_asked:
        return login_of_jaas({name: value.reveal() for name, value in options.items()})
    return login_of_text(values.get("provider_argument", ""))


def _read_kerberos(values: Mapping[str, Any], jaas: LoginModule | None, settings: dict[str, Any]) -> None:
    named = {
        "kerberos_service": "serviceName",
        "kerberos_principal": "principal",
        "kerberos_keytab": "keyTab",
    }
    for key, option in named.items():
        value = values.get(key) or (None if jaas is None else jaas.text(option))
        if value:
            settings[key] = value
