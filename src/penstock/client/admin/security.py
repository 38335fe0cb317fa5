"""The admin client's calls about security: access control entries, users with passwords, and quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.client.cluster.client import CONTROLLER
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from penstock.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest
from penstock.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from penstock.security.acls import Acl, AclFilter

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.security.secrets import Secret

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The SCRAM mechanisms, for which a cluster stores credentials, with their codes in requests (KIP-554)."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""The entity of a quota: sorted pairs of entity type and name. None stands for the default entity of a
type."""

T = TypeVar("T")


def password_text(value: object, what: str) -> object:
    """Return a password as text. The error message does not quote the value, which may be a secret.

    Raises:
        ConfigError: the value is neither a str nor a Secret.
    """
    from penstock.security.secrets import Secret  # few admins set passwords

    if isinstance(value, (str, Secret)):
        return value
    raise ConfigError(f"{what} is {type(value).__name__}: text is needed")


class SecurityAdministration:
    """Describes and changes ACLs, users and quotas, through the connections of a started client.

    Each call raises KafkaError if a broker refuses, and NetworkError or RequestTimeoutError if no broker
    answers in time.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def _asked(self, what: str, request: Message, read: Callable[[Any], T]) -> T:
        async def attempt() -> T:
            peer = await self._client.peer(CONTROLLER)
            return read(await peer.request(request, self._client.request_timeout_s))

        return await self._client.retrying(what, attempt)

    async def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add access control entries. An entry that exists already is left as it is."""
        creations = [
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
        request = CreateAclsRequest(creations=creations)
        await self._asked("creating entries", request, lambda answer: _check(answer.results))

    async def acls(self, wanted: AclFilter) -> list[Acl]:
        """Return the access control entries that match a filter, or all entries without a filter."""

        def read(answer: Any) -> list[Acl]:
            _check([answer])
            return sorted(_acl(each, acl) for each in answer.resources for acl in each.acls)

        return await self._asked("listing entries", DescribeAclsRequest(**_filter_fields(wanted)), read)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Remove the access control entries that match any of the filters, and return them."""
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_filter_fields(each)) for each in filters])

        def read(answer: Any) -> list[Acl]:
            _check(answer.filter_results)
            return sorted(
                {_acl(acl, acl) for result in answer.filter_results for acl in result.matching_acls}
            )

        return await self._asked("deleting entries", request, read)

    async def users(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return users that have SCRAM credentials, as a dict from user to iteration counts.

        The iteration counts are a dict from SCRAM mechanism to number. If `names` is empty, all users are
        returned.
        """
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] or None)
        by_code = {code: name for name, code in MECHANISMS.items()}

        def read(answer: Any) -> dict[str, dict[str, int]]:
            _check([answer, *answer.results])
            return {
                user.user: {
                    by_code.get(each.mechanism, str(each.mechanism)): each.iterations
                    for each in user.credential_infos
                }
                for user in answer.results
            }

        return await self._asked("listing users", request, read)

    async def set_password(
        self,
        user: str,
        password: str | Secret,
        mechanisms: Sequence[str],
        iterations: int,
    ) -> None:
        """Set a user's SCRAM password for these mechanisms.

        The client sends salted hashes, never the password.
        """
        from penstock.security.scram import new_salt, salted_password  # few admins set passwords

        for mechanism in mechanisms:
            salt = new_salt()
            upsertion = ScramCredentialUpsertion(
                name=user,
                mechanism=MECHANISMS[mechanism],
                iterations=iterations,
                salt=salt,
                salted_password=salted_password(mechanism, password, salt, iterations),
            )
            request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
            await self._asked("setting a password", request, lambda answer: _check(answer.results))

    async def delete_user(self, user: str, mechanisms: Sequence[str] | None) -> None:
        """Remove a user's SCRAM credentials for these mechanisms; None stands for all mechanisms."""
        if mechanisms is None:
            mechanisms = list((await self.users([user]))[user])
        for mechanism in mechanisms:
            deletion = ScramCredentialDeletion(name=user, mechanism=MECHANISMS[mechanism])
            request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
            await self._asked("deleting a user", request, lambda answer: _check(answer.results))

    async def set_quotas(self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]) -> None:
        """Set quotas of an entity (KIP-546). The value None removes a quota.

        `entity` maps entity types (``user``, ``client-id``, ``ip``) to names. The name None stands for the
        default entity of that type, whose quotas apply to every name without quotas of its own.
        """
        operations = [
            OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()
        ]
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        entry = EntryData(entity=parts, ops=operations)
        request = AlterClientQuotasRequest(entries=[entry])
        await self._asked("setting quotas", request, lambda answer: _check(answer.entries))

    async def quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """Return all quotas that are set: a dict from entity to a dict from quota name to value.

        The entities are those of `set_quotas`.
        """
        from penstock.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest

        def read(answer: Any) -> dict[QuotaEntity, dict[str, float]]:
            _check([answer])
            return {
                tuple(
                    sorted(
                        ((part.entity_type, part.entity_name) for part in entry.entity),
                        key=lambda part: part[0],
                    )
                ): {each.key: each.value for each in entry.values}
                for entry in answer.entries or ()
            }

        request = DescribeClientQuotasRequest(components=[], strict=False)
        found = await self._asked("listing quotas", request, read)
        return dict(sorted(found.items(), key=lambda item: [(kind, name or "") for kind, name in item[0]]))


def _filter_fields(wanted: AclFilter) -> dict[str, Any]:
    """Return the fields of an ACL filter, which have the same names in DescribeAcls and DeleteAcls."""
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _acl(resource: Any, entry: Any) -> Acl:
    """Return an `Acl` made from one `entry` of a `resource` in a DescribeAcls or DeleteAcls response."""
    return Acl(
        resource.resource_type,
        resource.resource_name,
        resource.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def _check(results: Iterable[Any]) -> None:
    """Raise KafkaError for the first of a response's results that has an error code."""
    for result in results:
        if result.error_code:
            message = result.error_message or "refused"
            raise error_for(ErrorCode(result.error_code), message)
