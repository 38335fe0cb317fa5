"""Tokens of OAUTHBEARER without a signature, as clients make them for brokers under test (KIP-255).

The claims of a token are set as for Apache Kafka's OAuthBearerUnsecuredLoginCallbackHandler, by options of
`sasl.jaas.config` that begin with ``unsecuredLogin``; or as for librdkafka, by the text of
`sasl.oauthbearer.config`, such as ``principal=alice scope=role1,role2``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.security.oauth import UNSECURED_LOGIN, Token, unsecured_token

STRING_CLAIM = f"{UNSECURED_LOGIN}StringClaim_"
NUMBER_CLAIM = f"{UNSECURED_LOGIN}NumberClaim_"
LIST_CLAIM = f"{UNSECURED_LOGIN}ListClaim_"
EXTENSION = f"{UNSECURED_LOGIN}Extension_"
PRINCIPAL_CLAIM = f"{UNSECURED_LOGIN}PrincipalClaimName"
SCOPE_CLAIM = f"{UNSECURED_LOGIN}ScopeClaimName"
LIFETIME = f"{UNSECURED_LOGIN}LifetimeSeconds"
OPTIONS = (PRINCIPAL_CLAIM, SCOPE_CLAIM, LIFETIME)
NAMED_OPTIONS = (STRING_CLAIM, NUMBER_CLAIM, LIST_CLAIM, EXTENSION)
"""Prefixes of options whose names continue with the name of a claim or of an extension."""

RESERVED_CLAIMS = ("iat", "exp")
"""The claims that options cannot set, because they are computed from the time and a token's lifetime."""

DEFAULT_PRINCIPAL = "admin"
LIFETIME_S = 3600
LIFETIME_S_MAX = (1 << 31) - 1
WORDS = ("principal", "principalClaimName", "scope", "scopeClaimName", "lifeSeconds")
WORD_EXTENSION = "extension_"
OF_LIBRDKAFKA = "sasl.oauthbearer.config"


class UnsecuredLogin(NamedTuple):
    """The claims, SASL extensions and lifetime of a client's tokens without a signature."""

    claims: Mapping[str, object]
    extensions: Mapping[str, str]
    lifetime_s: int = LIFETIME_S

    def token(self, now_s: float) -> Token:
        """Return a token that is valid from `now_s` on, for the lifetime."""
        return unsecured_token(self.claims, now_s, self.lifetime_s)


def asks_for_unsecured(options: Mapping[str, object]) -> bool:
    """Return True if options of `sasl.jaas.config` ask for tokens without a signature."""
    return any(name.startswith(UNSECURED_LOGIN) for name in options)


def login_of_jaas(options: Mapping[str, str]) -> UnsecuredLogin:
    """Return the login that the options of an OAuthBearerLoginModule describe.

    Raises:
        ConfigError: an option is unknown or malformed, or no claim names the principal.
    """
    claims: dict[str, object] = {}
    extensions: dict[str, str] = {}
    for option, value in options.items():
        beginning = next((each for each in NAMED_OPTIONS if option.startswith(each)), "")
        name = option.removeprefix(beginning)
        if beginning == EXTENSION:
            extensions[name] = value
        elif beginning:
            claims[_claim_name(option, name)] = _claim(beginning, option, value)
        elif option.startswith(UNSECURED_LOGIN) and option not in OPTIONS:
            known = did_you_mean(option, (*OPTIONS, *NAMED_OPTIONS), quoted=True)
            raise ConfigError(f"sasl.jaas.config: there is no option {option}{known}")
    principal_claim = options.get(PRINCIPAL_CLAIM, "").strip() or "sub"
    principal = claims.get(principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise ConfigError(
            f"sasl.jaas.config: no claim names the principal; add the option {STRING_CLAIM}{principal_claim}"
        )
    scope_claim = options.get(SCOPE_CLAIM, "").strip() or "scope"
    if not isinstance(claims.get(scope_claim, ""), (str, list)):
        raise ConfigError(
            f"sasl.jaas.config: the claim {scope_claim} has the scope, and is a number; write {LIST_CLAIM}"
            f"{scope_claim}"
        )
    lifetime = options.get(LIFETIME, str(LIFETIME_S))
    return UnsecuredLogin(claims, extensions, _lifetime(f"sasl.jaas.config: {LIFETIME}", lifetime))


def login_of_text(text: str) -> UnsecuredLogin:
    """Return the login that librdkafka's `sasl.oauthbearer.config` describes.

    A text without ``=`` is the principal; an empty text stands for the principal ``admin``.

    Raises:
        ConfigError: a word of the text is unknown, malformed or repeated, or the text does not name the
            principal.
    """
    if "=" not in text:
        return UnsecuredLogin({"sub": text.strip() or DEFAULT_PRINCIPAL}, {})
    words: dict[str, str] = {}
    for number, word in enumerate(text.split(), 1):
        name, equals, value = word.partition("=")
        if not equals or not value or not (name in WORDS or name.startswith(WORD_EXTENSION)):
            known = did_you_mean(name, WORDS, quoted=True)
            raise ConfigError(f"{OF_LIBRDKAFKA}: word {number} is not understood; write NAME=VALUE{known}")
        if name in words:
            raise ConfigError(f"{OF_LIBRDKAFKA}: {name} is given twice")
        words[name] = value
    if "principal" not in words:
        raise ConfigError(f"{OF_LIBRDKAFKA} names no principal; add principal=NAME")
    claims: dict[str, object] = {}
    if "scope" in words:
        scope_claim = words.get("scopeClaimName", "scope")
        claims[_claim_name(OF_LIBRDKAFKA, scope_claim)] = words["scope"].split(",")
    claims[_claim_name(OF_LIBRDKAFKA, words.get("principalClaimName", "sub"))] = words["principal"]
    extensions = {
        name.removeprefix(WORD_EXTENSION): value
        for name, value in words.items()
        if name.startswith(WORD_EXTENSION)
    }
    lifetime = words.get("lifeSeconds", str(LIFETIME_S))
    return UnsecuredLogin(claims, extensions, _lifetime(f"{OF_LIBRDKAFKA}: lifeSeconds", lifetime))


def _claim_name(option: str, name: str) -> str:
    """Return `name` if it is the name of a claim that may be set; else raise ConfigError."""
    if not name:
        raise ConfigError(f"sasl.jaas.config: the name of a claim follows {option}, as in {STRING_CLAIM}sub")
    if name in RESERVED_CLAIMS:
        raise ConfigError(f"{option}: the claim {name} is made from the time and cannot be set")
    return name


def _claim(beginning: str, option: str, value: str) -> object:
    """Return the value of a claim.

    The prefix of the claim's option decides on the type: text, number or list.
    """
    if beginning == STRING_CLAIM:
        return value
    if beginning == LIST_CLAIM:
        # The first character separates the rest.
        return value[1:].split(value[0]) if len(value) > 1 else []
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"sasl.jaas.config: the value of {option} is no number")
    return number


def _lifetime(name: str, text: str) -> int:
    """Return a lifetime in seconds. Raise ConfigError if the text is no whole number above 0."""
    if not re.fullmatch("[0-9]{1,10}", text.strip()) or not 0 < int(text) <= LIFETIME_S_MAX:
        raise ConfigError(f"{name} is no whole number of seconds from 1 to {LIFETIME_S_MAX}")
    return int(text)
