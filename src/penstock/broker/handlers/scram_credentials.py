"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51): users and passwords (KIP-554).

A client sends a password salted by PBKDF2; the broker derives two keys from that, and stores them as a record
of the metadata log. No response contains the password or the keys. A change applies to later logins; open
sessions continue. Metadata have no credentials below level 11 of `metadata.version`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.image import metadata_level
from penstock.broker.metadata.metadata_log import SCRAM_SINCE
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from penstock.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from penstock.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from penstock.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from penstock.security.sasl_mechanisms import SCRAM_CODES

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

CREDENTIALS_MAX = 100_000
"""The maximum number of SCRAM credentials."""

NAME_CHARACTERS_MAX = 1024
"""The maximum number of characters in the name of a user."""

_MECHANISMS = {code: name for name, code in SCRAM_CODES.items()}


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context[ServingNode]
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms for which users have credentials; for all users if none is named."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(
        context.node.cluster.security.credentials.items(), key=lambda item: item[0]
    ):
        infos.setdefault(user, []).append(
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        )
    named = Counter(user.name for user in request.users) if request.users else Counter(infos.keys())
    results = []
    for name, times in named.items():
        result = DescribeUserScramCredentialsResult(user=name, error_message=None)
        if times > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            )
        elif name not in infos:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = f"Attempt to describe a user credential that does not exist: {name}"
        else:
            result.credential_infos = infos[name]
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: Context[ServingNode]
) -> AlterUserScramCredentialsResponse:
    """Set and delete credentials; each user has one result, and is unchanged on an error."""
    cluster = context.node.cluster
    changes = [(each.name, each.mechanism) for each in request.deletions]
    changes += [(each.name, each.mechanism) for each in request.upsertions]
    times = Counter(name for name, _ in changes)
    results = {name: AlterUserScramCredentialsResult(user=name, error_message=None) for name in times}
    records: list[Message] = []

    def refuse(name: str, code: ErrorCode, message: str) -> None:
        results[name].error_code, results[name].error_message = code, message

    unknown = {name for name, mechanism in changes if mechanism not in _MECHANISMS}
    has_users = metadata_level(cluster.features) >= SCRAM_SINCE
    for name, count in times.items():
        if not has_users:
            refuse(name, ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
        elif not name:
            refuse(name, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        elif name in unknown:
            refuse(name, ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        elif count > 1:
            message = "A user credential cannot be altered twice in the same request"
            refuse(name, ErrorCode.DUPLICATE_RESOURCE, message)
    for deletion in request.deletions:
        name, mechanism = deletion.name, deletion.mechanism
        if results[name].error_code:
            continue
        if (name, mechanism) not in cluster.security.credentials:
            message = "Attempt to delete a user credential that does not exist"
            refuse(name, ErrorCode.RESOURCE_NOT_FOUND, message)
        else:
            records.append(RemoveUserScramCredentialRecord(name=name, mechanism=mechanism))
    for upsertion in request.upsertions:
        name = upsertion.name
        if results[name].error_code:
            continue
        why = _why_unacceptable(upsertion)
        if why is not None:
            refuse(name, ErrorCode.UNACCEPTABLE_CREDENTIAL, why)
        elif len(cluster.security.credentials) + len(records) >= CREDENTIALS_MAX:
            message = f"there are {CREDENTIALS_MAX} credentials, and no more can be had"
            refuse(name, ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
        else:
            records.append(_record(upsertion))
    try:
        cluster.alter(records, context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        for name, result in results.items():
            if not result.error_code:
                refuse(name, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    return AlterUserScramCredentialsResponse(results=list(results.values()))


def _why_unacceptable(upsertion: ScramCredentialUpsertion) -> str | None:
    from penstock.security.scram import ITERATIONS_MIN, SERVER_ITERATIONS_MAX

    if len(upsertion.name) > NAME_CHARACTERS_MAX or "\0" in upsertion.name:
        return f"Username must have at most {NAME_CHARACTERS_MAX} characters and no NUL"
    if upsertion.iterations < ITERATIONS_MIN:
        return "Too few iterations"
    if upsertion.iterations > SERVER_ITERATIONS_MAX:
        return "Too many iterations"
    if not upsertion.salt or not upsertion.salted_password:
        return "Salt and salted password must not be empty"
    return None


def _record(upsertion: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    from penstock.security.scram import ScramCredential

    made = ScramCredential.of_salted_password(
        _MECHANISMS[upsertion.mechanism],
        bytes(upsertion.salted_password),
        bytes(upsertion.salt),
        upsertion.iterations,
    )
    return UserScramCredentialRecord(
        name=upsertion.name,
        mechanism=upsertion.mechanism,
        salt=made.salt,
        stored_key=made.stored_key,
        server_key=made.server_key,
        iterations=made.iterations,
    )
