"""The parsed security settings of a client, independent of the names and files they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.security.secrets import Secret
from penstock.security.tls_context import TlsSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from penstock.client.security.unsecured_logins import UnsecuredLogin

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SUPPORTED_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")


@dataclass(frozen=True, kw_only=True)
class OAuthSettings:
    """The source of OAuth tokens: a callback, or an OIDC provider with the client credentials grant."""

    provider: Callable[..., Any] | None = None
    """The function that returns a token: text, a tuple, or a `penstock.security.oauth.Token`; it may be
    async."""
    provider_argument: str = ""
    """The argument for callbacks that take one: librdkafka's ``sasl.oauthbearer.config``."""
    token_endpoint: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    scope: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    is_header_urlencoded: bool = False
    ca: str | None = None
    """File or PEM text of the CAs to trust for the provider; None means the system's."""
    unsecured: UnsecuredLogin | None = None
    """The tokens without a signature to make, for brokers under test; None to make none."""
    connect_timeout_s: float = 10.0

    @property
    def is_token_file(self) -> bool:
        """True if the token is read from a file."""
        return self.token_endpoint is not None and self.token_endpoint.startswith("file:")


@dataclass(frozen=True, kw_only=True)
class SecuritySettings:
    """The protocol, TLS settings and credentials of a client's connections. `repr` shows no secret."""

    protocol: str
    """One of `PROTOCOLS`. It is never ``PLAINTEXT``, which has no settings."""
    tls: TlsSettings = field(default_factory=TlsSettings)
    ssl_context: ssl.SSLContext | None = None
    """An SSL context of the application, which replaces `tls`."""
    mechanism: str = ""
    username: str = ""
    password: Secret | None = None
    is_token: bool = False
    """True if user name and password are the id and HMAC of a delegation token."""
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    kerberos_service: str = "kafka"
    kerberos_principal: str | None = None
    kerberos_keytab: str | None = None
    given: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)
    """A dict from dotted name to value, as the application has given the settings. They are parsed again if
    one of their files has changed."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")
