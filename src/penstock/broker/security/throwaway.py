"""Security for a test or a laptop, in one argument: ``Broker(security="SASL_SSL")``.

Certificates are made for the run, and only its clients trust them. Each Kafka user gets its own password. All
files are in a directory that only the operating system's user can read, and that is removed with the broker.
Needs the extra ``penstock[security]``.
"""

from __future__ import annotations

import datetime
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.broker.security.image import record_of
from penstock.common.atomic_files import write_whole_bytes
from penstock.errors import ConfigError
from penstock.security.acls import Acl, parse_rule
from penstock.security.secrets import Secret

if TYPE_CHECKING:
    from penstock.broker.security.certificates import CertificateAuthority
    from penstock.broker.security.image import SecurityImage
    from penstock.clock import Clock
    from penstock.protocol.message import Message

PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
ADMIN, USER = "admin", "user"
PASSWORD_BYTES = 12
OAUTHBEARER = "OAUTHBEARER"
UNSECURED_LOGIN = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredLoginStringClaim_sub="admin";'
)
"""The JAAS login module text for listeners that accept tokens without a signature."""

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class SeededCluster(Protocol):
    """The interface of a cluster's metadata through which `Security.seed` writes users and ACL entries."""

    @property
    def security(self) -> SecurityImage: ...

    def catch_up(self) -> None: ...

    def alter(self, records: Sequence[Message], now_ms: int) -> None: ...


class SeededNode(Protocol):
    """The interface of a broker whose users and ACL entries `Security.seed` writes."""

    @property
    def cluster(self) -> SeededCluster: ...

    @property
    def clock(self) -> Clock: ...


class Security:
    """Authentication and authorization of a throw-away broker.

    `protocol` is SSL, SASL_PLAINTEXT or SASL_SSL. `users` are names, or names with passwords; by default
    ``admin`` and ``user``. `mechanisms` are SASL mechanisms, of which `client_settings` uses the first. With
    `acls` (rules such as ``allow user read topic:orders``) or `super_users`, the broker has an authorizer;
    super users are names, ``admin`` by default. `client_certificates` requires a certificate from each client
    (SSL only). `unsecured_tokens` adds OAUTHBEARER with tokens without a signature, as the first mechanism:
    with such a token, any client can log in as any user, even one that is not in `users`.
    """

    def __init__(
        self,
        protocol: str = "SASL_SSL",
        *,
        users: Mapping[str, str] | Sequence[str] = (ADMIN, USER),
        mechanisms: Sequence[str] = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"),
        acls: Sequence[str | Acl] | None = None,
        super_users: Sequence[str] | None = None,
        client_certificates: bool = False,
        unsecured_tokens: bool = False,
        host: str = "127.0.0.1",
    ) -> None:
        self.protocol = protocol.upper()
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"security: {protocol!r} is no protocol; name one of {', '.join(PROTOCOLS)}")
        if client_certificates and self.protocol != "SSL":
            raise ConfigError("security: client certificates are asked for with SSL; SASL names users itself")
        if isinstance(users, Mapping):
            self._passwords = {name: Secret(password) for name, password in users.items()}
        else:
            self._passwords = {name: Secret(secrets.token_urlsafe(PASSWORD_BYTES)) for name in users}
        if unsecured_tokens and not self.has_sasl:
            raise ConfigError(
                "security: unsecured tokens are a login by SASL; name SASL_PLAINTEXT or SASL_SSL"
            )
        self.mechanisms = list(mechanisms)
        self._has_unsecured_tokens = unsecured_tokens
        if unsecured_tokens and OAUTHBEARER not in self.mechanisms:
            self.mechanisms.insert(0, OAUTHBEARER)
        self._rules = [
            acl for each in acls or () for acl in ([each] if isinstance(each, Acl) else parse_rule(each))
        ]
        self.has_authorizer = acls is not None or super_users is not None
        self._super_users = list(super_users if super_users is not None else [ADMIN])
        self._client_certificates = client_certificates
        self._host = host
        self._directory: Path | None = None
        self._authority: CertificateAuthority | None = None
        self._seeded = False

    def __repr__(self) -> str:
        return f"Security({self.protocol!r}, users={sorted(self._passwords)})"

    @property
    def has_tls(self) -> bool:
        """True if connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        """True if users log in with passwords."""
        return self.protocol.startswith("SASL_")

    # --- the broker's side -------------------------------------------------------------------------------

    def settings(self, host: str, port: int) -> dict[str, str]:
        """Return the broker's settings; create certificates if they are needed."""
        prefix = f"listener.name.{self.protocol.lower()}."
        shown = f"[{host}]" if ":" in host else host
        found = {
            "listeners": f"{self.protocol}://{shown}:{port}",
            "listener.security.protocol.map": f"{self.protocol}:{self.protocol}",
        }
        if self.has_sasl:
            found[f"{prefix}sasl.enabled.mechanisms"] = ",".join(self.mechanisms)
            if "PLAIN" in self.mechanisms:
                found[f"{prefix}plain.sasl.jaas.config"] = self._jaas()
            if self._has_unsecured_tokens:
                found[f"{prefix}oauthbearer.sasl.jaas.config"] = UNSECURED_LOGIN
        if self.has_tls:
            found[f"{prefix}ssl.keystore.location"] = str(self.directory / "server.pem")
            if self._client_certificates:
                found[f"{prefix}ssl.client.auth"] = "required"
                found[f"{prefix}ssl.truststore.location"] = self.ca_file
                found[f"{prefix}ssl.principal.mapping.rules"] = "RULE:^CN=([^,]*).*$/$1/,DEFAULT"
            # Tests replace the certificate by any other one.
            found[f"{prefix}ssl.allow.dn.changes"] = found[f"{prefix}ssl.allow.san.changes"] = "true"
            self.rotate_certificate()
        if self.has_authorizer:
            found["authorizer.class.name"] = AUTHORIZER
            found["super.users"] = ";".join(f"User:{name}" for name in self._super_users)
        return found

    def _jaas(self) -> str:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        options = []
        for name, password in self._passwords.items():
            quoted = password.reveal().replace("\\", "\\\\").replace('"', '\\"')
            options.append(f'user_{name}="{quoted}"')
        return f"{module} {' '.join(options)};"

    def seed(self, node: SeededNode) -> None:
        """Write users and ACL entries to the metadata log, once."""
        from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
        from penstock.security.sasl_mechanisms import SCRAM_CODES
        from penstock.security.scram import ScramCredential, new_salt

        if self._seeded:
            return
        self._seeded = True
        records: list[Message] = []
        for mechanism in self.mechanisms if self.has_sasl else ():
            code = SCRAM_CODES.get(mechanism)
            if code is None:
                continue
            for name, password in self._passwords.items():
                made = ScramCredential.of_password(mechanism, password, new_salt())
                records.append(
                    UserScramCredentialRecord(
                        name=name,
                        mechanism=code,
                        salt=made.salt,
                        stored_key=made.stored_key,
                        server_key=made.server_key,
                        iterations=made.iterations,
                    )
                )
        node.cluster.catch_up()
        known = set(node.cluster.security.acls.values())
        records += [record_of(acl) for acl in dict.fromkeys(self._rules) if acl not in known]
        node.cluster.alter(records, node.clock.now_ms())

    # --- certificates ------------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """The directory with certificates and keys, created on first use."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="penstock-security-"))
            self._removal = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return self._directory

    @property
    def authority(self) -> CertificateAuthority:
        """The authority that signs all certificates, created on first use."""
        if self._authority is None:
            from penstock.broker.security.certificates import CertificateAuthority

            self._authority = CertificateAuthority()
            (self.directory / "ca.pem").write_bytes(self._authority.certificate_pem)
        return self._authority

    @property
    def ca_file(self) -> str:
        """The path of the file with the authority's certificate, which clients need to trust the broker."""
        _ = self.authority
        return str(self.directory / "ca.pem")

    def rotate_certificate(self, *, expired: bool = False, hosts: Sequence[str] | None = None) -> None:
        """Replace the broker's certificate, which the broker uses for new connections within a second.

        If `expired` is True, the new certificate has expired already. If `hosts` is given, it is valid for
        these names instead of the broker's.
        """
        names = dict.fromkeys(("localhost", "127.0.0.1", "::1", self._host) if hosts is None else hosts)
        lifetime = datetime.timedelta(days=-1 if expired else 30)
        made = self.authority.issue("penstock", names, lifetime=lifetime)
        path = self.directory / "server.pem"
        pem, fresh = made.key_pem + made.certificate_pem, path.with_suffix(".new")
        write_whole_bytes(str(path), pem, fresh=str(fresh), mode=0o600, sync=False)

    def close(self) -> None:
        """Remove certificates and keys. They are removed anyway when the process ends."""
        if self._directory is not None:
            self._removal()
            self._directory = self._authority = None

    # --- the client's side -------------------------------------------------------------------------------

    def password(self, user: str) -> str:
        """Return the password of a user.

        Raises:
            ConfigError: the user does not exist.
        """
        found = self._passwords.get(user)
        if found is None:
            raise ConfigError(f"there is no user {user!r}; there are {', '.join(sorted(self._passwords))}")
        return found.reveal()

    def client_settings(self, user: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """Return settings for a client, under the names that librdkafka and Penstock's clients use.

        By default, `user` is the first user, and `mechanism` is the broker's first mechanism.

        Raises:
            ConfigError: the user does not exist.
        """
        name = user if user is not None else next(iter(self._passwords))
        found = {"security.protocol": self.protocol}
        if self.has_tls:
            found["ssl.ca.location"] = self.ca_file
        if self._client_certificates:
            path = self.directory / f"client-{secrets.token_hex(4)}.pem"
            made = self.authority.issue(name, ())
            path.write_bytes(made.key_pem + made.certificate_pem)
            path.chmod(0o600)
            found["ssl.certificate.location"] = found["ssl.key.location"] = str(path)
        if self.has_sasl:
            found["sasl.mechanism"] = mechanism or self.mechanisms[0]
            found |= self._login_settings(name, found["sasl.mechanism"])
        return found

    def _login_settings(self, name: str, mechanism: str) -> dict[str, str]:
        """Return the settings with which a client logs in as the user `name`."""
        password = self.password(name)
        if mechanism != OAUTHBEARER:
            return {"sasl.username": name, "sasl.password": password}
        if len(name.split()) != 1:
            raise ConfigError(f"a token for the user {name!r} cannot be described: name one without spaces")
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={name}",
        }


def security_of(given: Security | str) -> Security:
    """Return the `Security` for the argument `security` of `Broker` or `Cluster`.

    Raises:
        ConfigError: the argument is neither a protocol nor a `Security`.
    """
    if not isinstance(given, (str, Security)):
        raise ConfigError(f"security is {given!r}: text such as 'SASL_SSL' is needed, or a Security")
    return given if isinstance(given, Security) else Security(given)
