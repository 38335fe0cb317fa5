"""Create-, Renew-, Expire- and DescribeDelegationToken (38 to 41): credentials that expire (KIP-48).

v2 is flexible; v3 of Create and Describe adds an owner other than the client. Without
`delegation.token.secret.key` every response has DELEGATION_TOKEN_AUTH_DISABLED (61). Connections without
authentication, or authenticated by a token, get DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64). Below level 14 of
`metadata.version` there are no tokens: the error is UNSUPPORTED_VERSION (35).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.config.definition import LONG_MAX
from penstock.broker.config.security_settings import BrokerSecuritySettings
from penstock.broker.context import Context
from penstock.broker.metadata.image import metadata_level
from penstock.broker.metadata.metadata_log import TOKENS_SINCE
from penstock.broker.security.image import DelegationToken
from penstock.broker.security.tokens import (
    RENEWERS_MAX,
    TOKENS_MAX,
    TOKENS_OF_ONE_MAX,
    ended,
    renewed,
)
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.message import Message
from penstock.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from penstock.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord
from penstock.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from penstock.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from penstock.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from penstock.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from penstock.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from penstock.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from penstock.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from penstock.protocol.uuid import random_uuid
from penstock.security.acls import Operation, ResourceType
from penstock.security.secrets import Secret
from penstock.security.token_codes import TokenCodes, token_hmac

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

USER = "User"
REQUESTER_SINCE = 3
TOKEN_BYTES = 200


def create_delegation_token(
    request: CreateDelegationTokenRequest, context: Context[ServingNode]
) -> CreateDelegationTokenResponse:
    """Create a token for the client's principal, or for another owner if the client is authorized to."""
    requester = context.session.principal
    kind, name = requester.kind, requester.name
    if context.version >= REQUESTER_SINCE and request.owner_principal_name:
        kind, name = request.owner_principal_type or "", request.owner_principal_name
    response = CreateDelegationTokenResponse(
        principal_type=kind,
        principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if context.version >= REQUESTER_SINCE:
        response.token_requester_principal_type = requester.kind
        response.token_requester_principal_name = requester.name
    owner = f"{kind}:{name}"
    try:
        _check_session(context)
        if owner != str(requester) and not _may(context, Operation.CREATE_TOKENS, owner):
            raise error_for(
                ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, f"{requester} may not make tokens of {owner}"
            )
        if kind != USER or any(each.principal_type != USER for each in request.renewers):
            raise error_for(ErrorCode.INVALID_PRINCIPAL_TYPE, "owners and renewers are of type User")
        secret = _secret(context)
        _check_level(context)
        image = context.node.cluster.security
        if len(image.tokens) >= TOKENS_MAX or len(request.renewers) > RENEWERS_MAX:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"at most {TOKENS_MAX} tokens, with {RENEWERS_MAX} renewers each"
            )
        if image.tokens_made[str(requester)] >= TOKENS_OF_ONE_MAX:
            raise error_for(
                ErrorCode.POLICY_VIOLATION, f"{requester} has {TOKENS_OF_ONE_MAX} tokens; let some expire"
            )
        now_ms, settings = context.now_ms, BrokerSecuritySettings(context.node.config)
        limit_ms = settings.integer("delegation.token.max.lifetime.ms")
        lifetime_ms = min(limit_ms, request.max_lifetime_ms) if request.max_lifetime_ms > 0 else limit_ms
        max_ms = min(now_ms + lifetime_ms, LONG_MAX)
        token = DelegationToken(
            random_uuid_text(),
            owner,
            str(requester),
            tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
            now_ms,
            max_ms,
            min(max_ms, now_ms + settings.integer("delegation.token.expiry.time.ms")),
        )
        _store(context, [_record(token)])
    except KafkaError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expiry_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = token_hmac(secret, token.token_id)
    return response


def random_uuid_text() -> str:
    """Return a token id: a random UUID in 22 characters of base64 for URLs."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(random_uuid()).rstrip(b"=").decode()


def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: Context[ServingNode]
) -> RenewDelegationTokenResponse:
    """Extend the life of a token."""
    try:
        _check_session(context)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    try:
        token = _find(context, bytes(request.hmac))
        limit_ms = BrokerSecuritySettings(context.node.config).integer("delegation.token.expiry.time.ms")
        token = renewed(
            token, str(context.session.principal), context.now_ms, request.renew_period_ms, limit_ms
        )
        _store(context, [_record(token)])
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expiry_ms)


def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: Context[ServingNode]
) -> ExpireDelegationTokenResponse:
    """Let a token expire, now or at a given time."""
    try:
        _check_session(context)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    try:
        token = _find(context, bytes(request.hmac))
        principal = str(context.session.principal)
        changed = ended(token, principal, context.now_ms, request.expiry_time_period_ms)
        if changed is None:
            _store(context, [RemoveDelegationTokenRecord(token_id=token.token_id)])
            return ExpireDelegationTokenResponse(expiry_timestamp_ms=context.now_ms)
        _store(context, [_record(changed)])
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=changed.expiry_ms)


def describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: Context[ServingNode]
) -> DescribeDelegationTokenResponse:
    """Return the tokens that the caller may see, with their HMACs, of the requested owners or of all.

    As in Apache Kafka, a token counts as owned by its owner, its requester and each of its renewers.
    """
    try:
        _check_session(context)
        codes = _codes(context)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    wanted = None
    if request.owners is not None:
        wanted = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    context.begin_claims()
    found = []
    sees_others = _sees_others(context)
    for token in context.node.cluster.security.tokens.values():
        if token.expiry_ms < context.now_ms:
            continue
        if wanted is not None and wanted.isdisjoint((token.owner, token.requester, *token.renewers)):
            continue
        if _is_of(context, token) or (sees_others and _sees(context, token)):
            context.claim(TOKEN_BYTES + sum(map(len, token.renewers)))
            found.append(_described(token, codes.code(token.token_id), context.version))
    return DescribeDelegationTokenResponse(tokens=found)


def _described(token: DelegationToken, code: bytes, version: int) -> DescribedDelegationToken:
    kind, _, name = token.owner.partition(":")
    described = DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=code,
    )
    if version >= REQUESTER_SINCE:
        kind, _, name = token.requester.partition(":")
        described.token_requester_principal_type, described.token_requester_principal_name = kind, name
    for renewer in token.renewers:
        kind, _, name = renewer.partition(":")
        described.renewers.append(DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name))
    return described


def _is_of(context: Context[ServingNode], token: DelegationToken) -> bool:
    return str(context.session.principal) in (token.owner, token.requester, *token.renewers)


def _sees_others(context: Context[ServingNode]) -> bool:
    """Return True if the caller may see tokens of any other principal (DESCRIBE or DESCRIBE_TOKENS)."""
    authorizer = context.node.authorizer
    if authorizer is None:
        return True
    rights = authorizer.rights(context.session.principal, context.session.client_address)
    return rights.anywhere(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN) or rights.anywhere(
        Operation.DESCRIBE_TOKENS, ResourceType.USER
    )


def _sees(context: Context[ServingNode], token: DelegationToken) -> bool:
    authorizer = context.node.authorizer
    if authorizer is None:
        return True
    rights = authorizer.rights(context.session.principal, context.session.client_address)
    return rights.allows(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id) or rights.allows(
        Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner
    )


def _may(context: Context[ServingNode], operation: Operation, user: str) -> bool:
    authorizer = context.node.authorizer
    if authorizer is None:
        return True
    rights = authorizer.rights(context.session.principal, context.session.client_address)
    return rights.allows(operation, ResourceType.USER, user)


def _check_session(context: Context[ServingNode]) -> None:
    session = context.session
    is_anonymous = session.security_protocol == "PLAINTEXT" or (
        session.mechanism is None and session.principal.name == "ANONYMOUS"
    )
    if is_anonymous or session.is_token:
        raise error_for(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "delegation tokens need a connection that has authenticated itself, and not by a token",
        )


def _secret(context: Context[ServingNode]) -> Secret:
    secret = BrokerSecuritySettings(context.node.config).secret("delegation.token.secret.key")
    if not secret:
        raise error_for(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "delegation.token.secret.key is not set: there are no tokens",
        )
    return secret


def _check_level(context: Context[ServingNode]) -> None:
    """Check that the cluster's level of `metadata.version` supports delegation tokens.

    Raises:
        KafkaError: UNSUPPORTED_VERSION (35).
    """
    if metadata_level(context.node.cluster.features) < TOKENS_SINCE:
        raise error_for(
            ErrorCode.UNSUPPORTED_VERSION,
            f"metadata.version is below {TOKENS_SINCE}: raise it to have delegation tokens",
        )


def _find(context: Context[ServingNode], code: bytes) -> DelegationToken:
    token_id = _codes(context).token_id(code)
    _check_level(context)
    if token_id is not None:
        return context.node.cluster.security.tokens[token_id]
    raise error_for(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token")


def _codes(context: Context[ServingNode]) -> TokenCodes:
    """Return the HMACs of all delegation tokens, computed on first use or after a change of the secret.

    Raises:
        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED (61).
    """
    secret, image = _secret(context), context.node.cluster.security
    codes = image.token_codes
    if codes is None or codes.secret != secret:
        codes = image.keep_codes(secret)
    return codes


def _record(token: DelegationToken) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issued_ms,
        max_timestamp=token.max_ms,
        expiration_timestamp=token.expiry_ms,
        token_id=token.token_id,
    )


def _store(context: Context[ServingNode], records: Sequence[Message]) -> None:
    """Write the metadata records of token changes to the metadata log.

    Raises:
        KafkaError: the metadata log cannot be written.
    """
    try:
        context.node.cluster.alter(records, context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        raise error_for(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
