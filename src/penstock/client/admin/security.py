"""The admin client's calls about security: access control entries, users with passwords, their quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.client.arguments import checked, instance_of, list_of, mapping, one_of, optional, size, text
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
from penstock.security.acls import EVERY_ACL, Acl, AclFilter

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.security.secrets import Secret

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Mechanisms with passwords that a cluster stores, by their codes (KIP-554)."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Kinds with names, sorted: what a quota is set for. None is the default of a kind."""

T = TypeVar("T")

_MECHANISMS = list_of(one_of(*MECHANISMS), "['SCRAM-SHA-256']")
_QUOTAS = mapping("{'producer_byte_rate': 1e6}")


def _password(value: object, what: str) -> object:
    """The password; a wrong one is not quoted, since it may be one in another form.

    Raises:
        ConfigError: it is no text.
    """
    from penstock.security.secrets import Secret  # few admins set passwords

    if isinstance(value, (str, Secret)):
        return value
    raise ConfigError(f"{what} is {type(value).__name__}: text is needed")


class SecurityAdministration:
    """The calls of `AsyncAdmin` about security. Each raises KafkaError for what the cluster refuses."""

    _client: AsyncClient

    async def _asked(self, what: str, request: Message, read: Callable[[Any], T]) -> T:
        await self._client.bootstrap()

        async def attempt() -> T:
            peer = await self._client.peer(CONTROLLER)
            return read(await peer.request(request, self._client.request_timeout_s))

        return await self._client.retrying(what, attempt)

    @checked(acls=list_of(instance_of(Acl), "[Acl(...)]"))
    async def create_acls(self, acls: Iterable[Acl]) -> None:
        """Add access control entries; those that are there already stay once."""
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

    @checked(wanted=instance_of(AclFilter))
    async def list_acls(self, wanted: AclFilter = EVERY_ACL) -> list[Acl]:
        """The access control entries that a filter selects, by default all."""
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )

        def read(answer: Any) -> list[Acl]:
            _check([answer])
            return [
                Acl(
                    each.resource_type,
                    each.resource_name,
                    each.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
                for each in answer.resources
                for acl in each.acls
            ]

        return sorted(await self._asked("listing entries", request, read))

    @checked(filters=list_of(instance_of(AclFilter), "[AclFilter(...)]"))
    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Remove the access control entries that the filters select; return them."""
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.resource_name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in filters
            ]
        )

        def read(answer: Any) -> list[Acl]:
            _check(answer.filter_results)
            found = {
                Acl(
                    acl.resource_type,
                    acl.resource_name,
                    acl.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
                for result in answer.filter_results
                for acl in result.matching_acls
            }
            return sorted(found)

        return await self._asked("deleting entries", request, read)

    @checked(names=list_of(text, "['ada']"))
    async def list_users(self, names: Sequence[str] = ()) -> dict[str, dict[str, int]]:
        """Users with SCRAM credentials, by default all: mechanisms, each with its iterations."""
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

    @checked(user=text, password=_password, mechanisms=_MECHANISMS, iterations=size)
    async def set_password(
        self,
        user: str,
        password: str | Secret,
        mechanisms: Sequence[str] = tuple(MECHANISMS),
        iterations: int = 4096,
    ) -> None:
        """Give a user a password, for these mechanisms. The password itself is not sent."""
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

    @checked(user=text, mechanisms=optional(_MECHANISMS))
    async def delete_user(self, user: str, mechanisms: Sequence[str] | None = None) -> None:
        """Remove the credentials of a user, for these mechanisms or for all that there are."""
        if mechanisms is None:
            mechanisms = list((await self.list_users([user]))[user])
        for mechanism in mechanisms:
            deletion = ScramCredentialDeletion(name=user, mechanism=MECHANISMS[mechanism])
            request = AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[])
            await self._asked("deleting a user", request, lambda answer: _check(answer.results))

    @checked(user=optional(text), quotas=_QUOTAS)
    async def set_user_quotas(self, user: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a user (None: of all that have none of their own); None for a quota removes it."""
        await self.set_quotas({"user": user}, quotas)

    @checked(entity=mapping("{'user': 'ada'}"), quotas=_QUOTAS)
    async def set_quotas(self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]) -> None:
        """Set quotas of an entity; None for a quota removes it (KIP-546).

        `entity` has names by their kinds, which are ``user``, ``client-id`` and ``ip``; None is the default
        of a kind, for all that have no quotas of their own.
        """
        operations = [
            OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()
        ]
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        entry = EntryData(entity=parts, ops=operations)
        request = AlterClientQuotasRequest(entries=[entry])
        await self._asked("setting quotas", request, lambda answer: _check(answer.entries))

    async def list_quotas(self) -> dict[QuotaEntity, dict[str, float]]:
        """All quotas that are set: by entity, and then by name. See `set_quotas` for entities."""
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


def _check(results: Iterable[Any]) -> None:
    """Raise KafkaError for the first result with an error."""
    for result in results:
        if result.error_code:
            message = result.error_message or "refused"
            raise error_for(ErrorCode(result.error_code), message)
