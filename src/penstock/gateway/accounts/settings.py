"""Settings of the gateway's connections to the cluster: with an account's credentials, or without any."""

from __future__ import annotations

from collections.abc import Mapping

CREDENTIALS = frozenset(
    ("sasl.username", "sasl.plain.username", "sasl.password", "sasl.plain.password", "sasl.jaas.config")
)
"""The names of settings that contain a user name or a password."""

MECHANISM = frozenset(("sasl.mechanism", "sasl.mechanisms"))

WITHOUT_PASSWORD = frozenset(("OAUTHBEARER", "GSSAPI"))
"""SASL mechanisms whose credentials are in settings other than user name and password."""

_OF_LOGINS = ("sasl.", "oauth.", "enable.sasl.")


def dotted(settings: Mapping[str, object] | None) -> dict[str, object]:
    """Return settings by Kafka's dotted names: ``security_protocol`` becomes ``security.protocol``."""
    given = settings or {}
    return {name if "." in name else name.replace("_", "."): value for name, value in given.items()}


def has_login(settings: Mapping[str, object]) -> bool:
    """Return True if settings, given by dotted names, contain SASL credentials."""
    if CREDENTIALS & settings.keys():
        return True
    return any(
        str(settings[name]).strip().upper() in WITHOUT_PASSWORD for name in MECHANISM & settings.keys()
    )


def without_login(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings for a connection without a login: TLS settings stay, SASL settings go."""
    left = {name: value for name, value in settings.items() if not name.startswith(_OF_LOGINS)}
    protocol = left.get("security.protocol")
    if isinstance(protocol, str) and protocol.strip().upper().startswith("SASL_"):
        left["security.protocol"] = transport = protocol.strip().upper().removeprefix("SASL_")
        if transport == "PLAINTEXT":
            del left["security.protocol"]
    return left


def overlaid(base: Mapping[str, object], account: Mapping[str, object]) -> dict[str, object]:
    """Return the gateway's settings, overridden by the settings of an account.

    If the account has any credentials, all credentials of the gateway are dropped. The gateway's SASL
    mechanism is then dropped as well, if the account has its own.
    """
    left = dict(base)
    for group in (CREDENTIALS, MECHANISM):
        if group & account.keys():
            left = {name: value for name, value in left.items() if name not in group}
    return left | dict(account)
