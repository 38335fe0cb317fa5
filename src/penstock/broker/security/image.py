"""`SecurityImage`: ACL entries, SCRAM credentials and delegation tokens in the cluster's metadata.

The metadata records are those of Apache Kafka. Request handlers check changes and write them as records.
`ClusterImage` calls this module to apply the records in log order, and again after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from penstock.security.acls import DENIED_BITS, Acl, Permission

if TYPE_CHECKING:
    from penstock.broker.security.authorizer import Authorizer
    from penstock.protocol.message import Message
    from penstock.protocol.messages.access_control_entry_record import AccessControlEntryRecord
    from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord
    from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
    from penstock.security.scram import ScramCredential
    from penstock.security.secrets import Secret
    from penstock.security.token_codes import TokenCodes
    from penstock.security.unknown_users import CredentialShape


def record_of(acl: Acl, acl_id: bytes | None = None) -> Message:
    """Return a record that adds an ACL entry, by default with a new id."""
    from penstock.protocol.messages.access_control_entry_record import AccessControlEntryRecord
    from penstock.protocol.uuid import random_uuid

    return AccessControlEntryRecord(
        id=acl_id or random_uuid(),
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


class DelegationToken(NamedTuple):
    """One delegation token (KIP-48). Times are in milliseconds since 1970; principals as ``User:name``."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    expiry_ms: int


class SecurityImage:
    """The ACL entries, SCRAM credentials and delegation tokens that the metadata records describe."""

    def __init__(self) -> None:
        self.acls: dict[bytes, Acl] = {}
        """A dict from the id in the metadata record of an ACL entry to the entry."""
        self.unenforceable_acls: dict[bytes, Acl] = {}
        """ACL entries by id whose operation is unknown, from a later release. They have no effect, but
        stay in the metadata.
        """
        self.credentials: dict[tuple[str, int], ScramCredential] = {}
        """SCRAM credentials by user name and mechanism code (1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512)."""
        self.credential_shapes: dict[int, Counter[CredentialShape]] = {}
        """For each mechanism code, the number of credentials with each (salt length, salt form,
        iterations). Fake credentials for unknown users imitate the usual ones.
        """
        self.tokens: dict[str, DelegationToken] = {}
        """A dict from token id to delegation token."""
        self.tokens_made: Counter[str] = Counter()
        """A count of the existing delegation tokens that each principal has requested."""
        self.token_codes: TokenCodes | None = None
        """The HMACs of all tokens; None until `keep_codes` is called with the broker's secret."""
        self._authorizer: Authorizer | None = None

    def keep_codes(self, secret: Secret) -> TokenCodes:
        """Compute and return the HMACs of all tokens; from now on, compute one for each new token."""
        from penstock.security.token_codes import TokenCodes

        codes = self.token_codes = TokenCodes(secret, self.tokens)
        return codes

    def inform(self, authorizer: Authorizer) -> None:
        """Pass all ACL entries to an authorizer now, and later every added or removed entry."""
        self._authorizer = authorizer
        for acl in self.acls.values():
            authorizer.add(acl)

    def records(self) -> Iterator[Message]:
        """Yield the smallest list of metadata records that describes this image."""
        from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord
        from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

        for acls in (self.acls, self.unenforceable_acls):
            for acl_id, acl in acls.items():
                yield record_of(acl, acl_id)
        for (name, mechanism), credential in self.credentials.items():
            yield UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )
        for token in self.tokens.values():
            yield DelegationTokenRecord(
                owner=token.owner,
                requester=token.requester,
                renewers=list(token.renewers),
                issue_timestamp=token.issued_ms,
                max_timestamp=token.max_ms,
                expiration_timestamp=token.expiry_ms,
                token_id=token.token_id,
            )

    # --- the effects of metadata records -----------------------------------------------------------------

    def add_acl(self, record: AccessControlEntryRecord) -> None:
        """Add an ACL entry, or replace the entry with its id."""
        acl = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        if record.operation not in DENIED_BITS or record.permission_type not in (
            Permission.DENY,
            Permission.ALLOW,
        ):
            self.unenforceable_acls[record.id] = acl
            return
        self.remove_acl(record.id)
        self.acls[record.id] = acl
        if self._authorizer is not None:
            self._authorizer.add(acl)

    def remove_acl(self, acl_id: bytes) -> None:
        """Remove an ACL entry, if it exists."""
        self.unenforceable_acls.pop(acl_id, None)
        removed = self.acls.pop(acl_id, None)
        if removed is not None and self._authorizer is not None:
            self._authorizer.remove(removed)

    def add_credential(self, record: UserScramCredentialRecord) -> None:
        """Add a SCRAM credential, or replace the user's earlier one for the mechanism."""
        from penstock.security.scram import ScramCredential
        from penstock.security.unknown_users import shape_of

        self.remove_credential(record.name, record.mechanism)
        credential = self.credentials[record.name, record.mechanism] = ScramCredential(
            bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
        )
        self.credential_shapes.setdefault(record.mechanism, Counter())[shape_of(credential)] += 1

    def remove_credential(self, name: str, mechanism: int) -> None:
        """Remove a SCRAM credential, if it exists."""
        dropped = self.credentials.pop((name, mechanism), None)
        if dropped is not None:
            from penstock.security.unknown_users import shape_of

            shapes = self.credential_shapes[mechanism]
            shapes[shape_of(dropped)] -= 1
            self.credential_shapes[mechanism] = +shapes

    def add_token(self, record: DelegationTokenRecord) -> None:
        """Add a delegation token, or replace the token with its id."""
        self._drop_token(record.token_id)
        self.tokens_made[record.requester] += 1
        if self.token_codes is not None:
            self.token_codes.add(record.token_id)
        self.tokens[record.token_id] = DelegationToken(
            record.token_id,
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )

    def remove_token(self, token_id: str) -> None:
        """Remove a delegation token, if it exists."""
        self._drop_token(token_id)
        if self.token_codes is not None:
            self.token_codes.remove(token_id)

    def _drop_token(self, token_id: str) -> None:
        dropped = self.tokens.pop(token_id, None)
        if dropped is not None:
            self.tokens_made[dropped.requester] -= 1
            if not self.tokens_made[dropped.requester]:
                del self.tokens_made[dropped.requester]
