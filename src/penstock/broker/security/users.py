"""The users of a listener: PLAIN users from its settings, SCRAM and tokens from the metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.security.tokens import TokenCredentials
from penstock.errors import ConfigError
from penstock.security.sasl_mechanisms import PLAIN, SCRAM_CODES

if TYPE_CHECKING:
    from penstock.broker.config.security_settings import BrokerSecuritySettings
    from penstock.broker.security.image import SecurityImage
    from penstock.security.scram import ScramCredential
    from penstock.security.secrets import Secret

_USER = "user_"


def plain_users(settings: BrokerSecuritySettings) -> dict[str, Secret]:
    """Return a listener's PLAIN users: options ``user_NAME="PASSWORD"`` of its `sasl.jaas.config`.

    Raises:
        ConfigError: the text is malformed.
    """
    text = settings.secret("sasl.jaas.config", PLAIN, inherits=False)
    if text is None:
        return {}
    from penstock.security.jaas import parse_jaas

    options = parse_jaas(text.reveal()).options
    return {name.removeprefix(_USER): value for name, value in options.items() if name.startswith(_USER)}


class ListenerUsers:
    """Looks up the users of one listener: passwords, credentials and tokens."""

    def __init__(
        self,
        passwords: dict[str, Secret],
        image: SecurityImage,
        token_secret: Callable[[], Secret | None],
        salt_key: bytes,
    ) -> None:
        """Prepare look-ups. `passwords` has the PLAIN users; `image` has the SCRAM users and the tokens.

        `salt_key` is a secret that is stored with the broker's data: the salts for unknown user names and for
        tokens are derived from it.
        """
        self.passwords = passwords
        self._image = image
        self._token_secret = token_secret
        self._tokens: TokenCredentials | None = None
        self._salt_key = salt_key

    def password(self, name: str) -> Secret | None:
        """Return the password for PLAIN, or None for an unknown user."""
        return self.passwords.get(name)

    def credential(self, name: str, mechanism: str) -> ScramCredential | None:
        """Return a user's credential for a SCRAM mechanism, or None if the user has none."""
        return self._image.credentials.get((name, SCRAM_CODES[mechanism]))

    def token_credential(self, token_id: str, mechanism: str) -> tuple[ScramCredential, str, int] | None:
        """Return a delegation token's credential, owner and expiry (ms since 1970), or None if unknown."""
        token, secret = self._image.tokens.get(token_id), self._token_secret()
        if token is None or secret is None:
            return None
        if self._tokens is None:
            self._tokens = TokenCredentials(secret, self._salt_key)
        credential = self._tokens.credential(token_id, mechanism)
        return credential, token.owner.partition(":")[2], min(token.expiry_ms, token.max_ms)

    def fake_credential(self, name: str, mechanism: str, *, is_token: bool) -> ScramCredential:
        """Return a credential that looks real but fails every login, to hide that a user is unknown."""
        from penstock.security.unknown_users import fake_credential

        shapes = None if is_token else self._image.credential_shapes.get(SCRAM_CODES[mechanism])
        return fake_credential(mechanism, self._salt_key, name, shapes)


def enabled_mechanisms(settings: BrokerSecuritySettings, supported: tuple[str, ...]) -> list[str]:
    """Return the SASL mechanisms that a listener offers.

    Raises:
        ConfigError: the settings name no mechanism, or one that is not supported.
    """
    text = settings.text("sasl.enabled.mechanisms") or ""
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in supported]
    if unknown or not names:
        what = f"{', '.join(unknown)} is not supported" if unknown else "none is named"
        raise ConfigError(
            f"listener {settings.listener}: sasl.enabled.mechanisms: {what};"
            f" name some of {', '.join(supported)}"
        )
    return names
