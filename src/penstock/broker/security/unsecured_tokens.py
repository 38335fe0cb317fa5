"""Checks of bearer tokens without a signature (KIP-255), which any client can forge: for tests only.

A listener accepts such tokens only if its settings explicitly request this: with an option that begins with
``unsecuredLogin`` or ``unsecuredValidator`` in its `sasl.jaas.config`, or with Apache Kafka's class
OAuthBearerUnsecuredValidatorCallbackHandler, whose checks this module makes. A listener that has keys for
checking signatures never accepts unsigned tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.config.security_settings import HANDLER_CLASS, JWKS_URL, UNSECURED_HANDLERS
from penstock.broker.security.bearer_tokens import GoodToken, TokenError, is_number, jwt_parts, principal_of
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.security.oauth import UNSECURED_LOGIN
from penstock.security.sasl_mechanisms import OAUTHBEARER, ScopesMissing

if TYPE_CHECKING:
    from penstock.broker.config.security_settings import BrokerSecuritySettings

VALIDATOR = "unsecuredValidator"
"""The prefix of the JAAS options that define which tokens without a signature are valid."""

PRINCIPAL_CLAIM = f"{VALIDATOR}PrincipalClaimName"
SCOPE_CLAIM = f"{VALIDATOR}ScopeClaimName"
REQUIRED_SCOPE = f"{VALIDATOR}RequiredScope"
CLOCK_SKEW = f"{VALIDATOR}AllowableClockSkewMs"
OPTIONS = (PRINCIPAL_CLAIM, SCOPE_CLAIM, REQUIRED_SCOPE, CLOCK_SKEW)

SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""A pattern for one scope of a token (RFC 6749, section 3.3)."""


class UnsecuredRules(NamedTuple):
    """The rules that a token without a signature must follow."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: tuple[str, ...] = ()
    skew_ms: int = 0

    def check(self, text: str, now_ms: int) -> GoodToken:
        """Return the principal and the expiry of a token that follows the rules.

        Raises:
            TokenError: the token is malformed, has a signature, lacks a claim, or is not valid now.
            ScopesMissing: the token lacks a scope that is required.
        """
        header, claims = jwt_parts(text)
        if header.get("alg") != "none" or not text.endswith("."):
            raise TokenError(
                f"it has a signature, and this listener takes tokens without one; set {JWKS_URL} to have"
                " signatures checked"
            )
        principal = principal_of(claims, self.principal_claim)
        scopes = self._scopes(claims)
        expiry = self._check_times(claims, now_ms)
        missing = [each for each in self.required_scopes if each not in scopes]
        if missing:
            raise ScopesMissing(f"it lacks the scope {missing[0]}", self.required_scopes)
        return GoodToken(principal, round(expiry * 1000))

    def _check_times(self, claims: Mapping[str, Any], now_ms: int) -> float:
        """Return a token's expiry in seconds since 1970; raise TokenError if the token is not valid now."""
        expiry, issued = claims.get("exp"), claims.get("iat", 0)
        if not is_number(expiry) or not is_number(issued):
            raise TokenError("its exp is missing, or its exp or iat is no number")
        if 1000 * issued > now_ms + self.skew_ms:
            raise TokenError("it was issued in the future; do the clocks differ?")
        if now_ms - self.skew_ms >= 1000 * expiry:
            raise TokenError(f"it has expired {now_ms / 1000 - expiry:.0f} s ago")
        if "iat" in claims and expiry <= issued:
            raise TokenError("its exp is not after its iat")
        return expiry

    def _scopes(self, claims: Mapping[str, Any]) -> set[str]:
        """Return a token's scopes. As in Apache Kafka, a string is one scope, even with spaces in it."""
        given = claims.get(self.scope_claim, [])
        scopes = [given] if isinstance(given, str) else given
        if not isinstance(scopes, list):
            raise TokenError(f"its claim {self.scope_claim} is neither text nor a list")
        return {each.strip() for each in scopes if isinstance(each, str) and each.strip()}


def unsecured_rules_of(settings: BrokerSecuritySettings) -> UnsecuredRules | None:
    """Return a listener's rules for unsigned tokens, or None if its settings do not allow such tokens.

    Raises:
        ConfigError: the settings contradict each other, or an option is unknown or malformed.
    """
    handler = (settings.text(HANDLER_CLASS, OAUTHBEARER) or "").strip()
    is_named = handler in UNSECURED_HANDLERS
    if settings.text(JWKS_URL, OAUTHBEARER):
        if is_named:
            raise ConfigError(
                f"listener {settings.listener}: {HANDLER_CLASS} takes tokens without a signature, and"
                f" {JWKS_URL} has signatures checked; remove one of them"
            )
        return None
    if handler and not is_named:
        return None
    options = _options(settings)
    if not is_named and not any(name.startswith((UNSECURED_LOGIN, VALIDATOR)) for name in options):
        return None
    return _rules(options)


def _options(settings: BrokerSecuritySettings) -> dict[str, str]:
    """Return the JAAS options of a listener's OAuthBearerLoginModule; empty if it has no such module."""
    text = settings.secret("sasl.jaas.config", OAUTHBEARER, inherits=False)
    if text is None:
        return {}
    from penstock.security.jaas import parse_jaas

    module = parse_jaas(text.reveal())
    if module.mechanism != OAUTHBEARER:
        return {}
    return {name: value.reveal() for name, value in module.options.items()}


def _rules(options: Mapping[str, str]) -> UnsecuredRules:
    for name in options:
        # Apache Kafka ignores a misspelt name, and with it the scope that tokens were to have.
        if name.startswith(VALIDATOR) and name not in OPTIONS:
            raise ConfigError(
                f"sasl.jaas.config: there is no option {name}{did_you_mean(name, OPTIONS, quoted=True)}"
            )
    scopes = options.get(REQUIRED_SCOPE, "").split()
    if not all(SCOPE.fullmatch(each) for each in scopes):
        raise ConfigError(
            f"sasl.jaas.config: {REQUIRED_SCOPE} has a word that is no scope; write printable ASCII without"
            " quotes and backslashes, and a space between scopes"
        )
    skew = options.get(CLOCK_SKEW, "").strip() or "0"
    if not re.fullmatch("[0-9]{1,9}", skew):
        raise ConfigError(f"sasl.jaas.config: {CLOCK_SKEW} is no whole number of milliseconds from 0 on")
    return UnsecuredRules(
        options.get(PRINCIPAL_CLAIM, "").strip() or "sub",
        options.get(SCOPE_CLAIM, "").strip() or "scope",
        tuple(scopes),
        int(skew),
    )
