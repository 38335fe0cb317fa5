"""What a broker says about security that has none: the answers of an Apache Kafka with one plain listener.

SaslHandshake (17) and SaslAuthenticate (36): there is nothing to authenticate for (34). DescribeAcls (29),
CreateAcls (30), DeleteAcls (31): no authorizer is configured (54). Delegation tokens (38 to 41) need an
authenticated connection (64). Of users' SCRAM credentials (50) there are none.
"""

from __future__ import annotations

from collections import Counter

from penstock.broker.context import Context, Parts
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.create_acls_request import CreateAclsRequest
from penstock.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from penstock.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from penstock.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from penstock.protocol.messages.delete_acls_request import DeleteAclsRequest
from penstock.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest
from penstock.protocol.messages.describe_acls_response import DescribeAclsResponse
from penstock.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from penstock.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from penstock.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from penstock.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from penstock.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from penstock.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from penstock.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from penstock.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

NO_AUTHORIZER = "No Authorizer is configured."
USER, ANONYMOUS = "User", "ANONYMOUS"
REQUESTER_SINCE = 3


def sasl_handshake(request: SaslHandshakeRequest, context: Context[Parts]) -> SaslHandshakeResponse:
    """The listener is a plain one."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(request: SaslAuthenticateRequest, context: Context[Parts]) -> SaslAuthenticateResponse:
    """The listener is a plain one."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def describe_acls(request: DescribeAclsRequest, context: Context[Parts]) -> DescribeAclsResponse:
    """No authorizer: every operation is allowed, and there are no ACLs to describe."""
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)


def create_acls(request: CreateAclsRequest, context: Context[Parts]) -> CreateAclsResponse:
    """Refuse every rule."""
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused] * len(request.creations))


def delete_acls(request: DeleteAclsRequest, context: Context[Parts]) -> DeleteAclsResponse:
    """Refuse every filter."""
    refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))


def create_delegation_token(
    request: CreateDelegationTokenRequest, context: Context[Parts]
) -> CreateDelegationTokenResponse:
    """Tokens are for connections that have authenticated themselves."""
    response = CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=USER,
        principal_name=ANONYMOUS,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if context.version >= REQUESTER_SINCE:
        response.token_requester_principal_type, response.token_requester_principal_name = USER, ANONYMOUS
    return response


def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: Context[Parts]
) -> RenewDelegationTokenResponse:
    """As above."""
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: Context[Parts]
) -> ExpireDelegationTokenResponse:
    """As above."""
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


def describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: Context[Parts]
) -> DescribeDelegationTokenResponse:
    """As above."""
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context[Parts]
) -> DescribeUserScramCredentialsResponse:
    """No user has any: each one that is named is not found (91), or named twice (92)."""
    named = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(
                user=name,
                error_code=ErrorCode.RESOURCE_NOT_FOUND if times == 1 else ErrorCode.DUPLICATE_RESOURCE,
                error_message=f"Attempt to describe a user credential that does not exist: {name}"
                if times == 1
                else f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
            )
            for name, times in named.items()
        ],
    )
