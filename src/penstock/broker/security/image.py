"""The security state in the metadata: ACL entries, SCRAM credentials, delegation tokens.

The records are Kafka's. The handlers of requests check changes and write them as records; this module applies
the records in log order, and applies them again after a restart.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from penstock.security.acls import DENIED_BITS, Acl, Permission

if TYPE_CHECKING:
    from penstock.broker.security.authorizer import Authorizer
    from penstock.protocol.message import Message
    from penstock.security.scram import ScramCredential
    from penstock.security.secrets import Secret
    from penstock.security.token_codes import TokenCodes
    from penstock.security.unknown_users import CredentialShape

(
    DELEGATION_TOKEN,
    SCRAM_CREDENTIAL,
    ACL,
    REMOVE_ACL,
    REMOVE_SCRAM_CREDENTIAL,
    REMOVE_DELEGATION_TOKEN,
) = RECORD_KEYS = (10, 11, 18, 19, 22, 26)
"""Types of the metadata records that concern security."""


def record_of(acl: Acl) -> Message:
    """Return a record that adds an ACL entry, with a new id."""
    from penstock.protocol.messages.access_control_entry_record import AccessControlEntryRecord
    from penstock.protocol.uuid import random_uuid

    return AccessControlEntryRecord(
        id=random_uuid(),
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
        """ACL entries by the id in their metadata record."""
        self.credentials: dict[tuple[str, int], ScramCredential] = {}
        """Credentials by user name and code of the mechanism (1 SCRAM-SHA-256, 2 SCRAM-SHA-512)."""
        self.credential_shapes: dict[int, Counter[CredentialShape]] = {}
        """The number of credentials of each shape (salt length, salt form, iterations), by mechanism code."""
        self.tokens: dict[str, DelegationToken] = {}
        """Delegation tokens by token id."""
        self.tokens_made: Counter[str] = Counter()
        """The number of existing tokens that each principal has requested."""
        self.token_codes: TokenCodes | None = None
        """The HMACs of all tokens; None until `keep_codes` is called with the broker's secret."""
        self._authorizer: Authorizer | None = None

    def keep_codes(self, secret: Secret) -> TokenCodes:
        """Compute the HMACs of all tokens, and from now on those of new tokens; return them."""
        from penstock.security.token_codes import TokenCodes

        codes = self.token_codes = TokenCodes(secret, self.tokens)
        return codes

    def inform(self, authorizer: Authorizer) -> None:
        """Pass all ACL entries to an authorizer now, and each added or removed entry later."""
        self._authorizer = authorizer
        for acl in self.acls.values():
            authorizer.add(acl)

    def apply(self, record: Message) -> None:
        """Apply a metadata record. Records that do not concern security change nothing."""
        apply = _APPLY.get(record.API_KEY or 0)
        if apply is not None:
            apply(self, record)

    def _apply_acl(self, record: Message) -> None:
        from penstock.protocol.messages.access_control_entry_record import AccessControlEntryRecord

        assert isinstance(record, AccessControlEntryRecord)
        if record.operation not in DENIED_BITS or record.permission_type not in (
            Permission.DENY,
            Permission.ALLOW,
        ):
            return  # of a later release: it cannot be enforced, and allows nothing
        self._apply_remove_acl_id(record.id)
        acl = self.acls[record.id] = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        if self._authorizer is not None:
            self._authorizer.add(acl)

    def _apply_remove_acl(self, record: Message) -> None:
        from penstock.protocol.messages.remove_access_control_entry_record import (
            RemoveAccessControlEntryRecord,
        )

        assert isinstance(record, RemoveAccessControlEntryRecord)
        self._apply_remove_acl_id(record.id)

    def _apply_remove_acl_id(self, acl_id: bytes) -> None:
        removed = self.acls.pop(acl_id, None)
        if removed is not None and self._authorizer is not None:
            self._authorizer.remove(removed)

    def _apply_credential(self, record: Message) -> None:
        from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
        from penstock.security.scram import ScramCredential
        from penstock.security.unknown_users import shape_of

        assert isinstance(record, UserScramCredentialRecord)
        self._drop_credential(record.name, record.mechanism)
        credential = self.credentials[record.name, record.mechanism] = ScramCredential(
            bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
        )
        self.credential_shapes.setdefault(record.mechanism, Counter())[shape_of(credential)] += 1

    def _drop_credential(self, name: str, mechanism: int) -> None:
        dropped = self.credentials.pop((name, mechanism), None)
        if dropped is not None:
            from penstock.security.unknown_users import shape_of

            shapes = self.credential_shapes[mechanism]
            shapes[shape_of(dropped)] -= 1
            self.credential_shapes[mechanism] = +shapes

    def _apply_remove_credential(self, record: Message) -> None:
        from penstock.protocol.messages.remove_user_scram_credential_record import (
            RemoveUserScramCredentialRecord,
        )

        assert isinstance(record, RemoveUserScramCredentialRecord)
        self._drop_credential(record.name, record.mechanism)

    def _apply_token(self, record: Message) -> None:
        from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord

        assert isinstance(record, DelegationTokenRecord)
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

    def _apply_remove_token(self, record: Message) -> None:
        from penstock.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord

        assert isinstance(record, RemoveDelegationTokenRecord)
        self._drop_token(record.token_id)
        if self.token_codes is not None:
            self.token_codes.remove(record.token_id)

    def _drop_token(self, token_id: str) -> None:
        dropped = self.tokens.pop(token_id, None)
        if dropped is not None:
            self.tokens_made[dropped.requester] -= 1
            if not self.tokens_made[dropped.requester]:
                del self.tokens_made[dropped.requester]


_APPLY = {
    ACL: SecurityImage._apply_acl,
    REMOVE_ACL: SecurityImage._apply_remove_acl,
    SCRAM_CREDENTIAL: SecurityImage._apply_credential,
    REMOVE_SCRAM_CREDENTIAL: SecurityImage._apply_remove_credential,
    DELEGATION_TOKEN: SecurityImage._apply_token,
    REMOVE_DELEGATION_TOKEN: SecurityImage._apply_remove_token,
}
