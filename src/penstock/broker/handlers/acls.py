"""DescribeAcls (29), CreateAcls (30) and DeleteAcls (31), versions 0-3: access control entries.

v1 adds prefixed patterns, v2 is flexible, v3 adds users as resources. A filter in v0 matches only literal
patterns. Without an authorizer (`authorizer.class.name`) every response has SECURITY_DISABLED (54).

Entries are records of the metadata log. An entry that is created twice is stored once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.image import metadata_level
from penstock.broker.security.image import record_of
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from penstock.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from penstock.protocol.messages.delete_acls_request import DeleteAclsRequest
from penstock.protocol.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest
from penstock.protocol.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from penstock.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from penstock.security.acls import (
    ACL_RECORDS_MAX,
    Acl,
    AclFilter,
    PatternType,
    network_of,
    warning_of,
    why_invalid,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

NO_AUTHORIZER = "No Authorizer is configured."

PATTERNS_SINCE = 1
UNKNOWN_CODE = "a filter has a resource type, pattern type, operation or permission that there is not"
TOO_MANY = f"more than {ACL_RECORDS_MAX} entries in one request; send fewer at a time"

NETWORKS_SINCE = (4, 4)
NETWORKS_LEVEL = 32
"""4.4-IV1: the first level of `metadata.version` in which the host of an ACL entry may be a network."""

NO_NETWORKS = (
    "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher"
    " (a new broker has it with penstock.metadata.version=4.4)"
)

ACLS_MAX = 100_000
"""The maximum number of access control entries. Each uses about a kilobyte of memory."""

ENTRY_BYTES = 64
"""The approximate size in bytes of an ACL entry in a response, without the entry's names."""


def describe_acls(request: DescribeAclsRequest, context: Context[ServingNode]) -> DescribeAclsResponse:
    """Return the access control entries that a filter selects, grouped by resource."""
    if context.node.authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter if context.version >= PATTERNS_SINCE else PatternType.LITERAL,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if wanted.has_zero:
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=UNKNOWN_CODE)
    context.begin_claims()
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in dict.fromkeys(context.node.cluster.security.acls.values()):
        if not wanted.selects(acl) or (
            context.version < PATTERNS_SINCE and acl.pattern_type != PatternType.LITERAL
        ):
            continue
        context.claim(ENTRY_BYTES + len(acl.principal) + len(acl.host))
        pattern = acl.resource_type, acl.resource_name, acl.pattern_type
        resource = resources.get(pattern)
        if resource is None:
            context.claim(ENTRY_BYTES + len(acl.resource_name))
            resource = resources[pattern] = DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
            )
        resource.acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def create_acls(request: CreateAclsRequest, context: Context[ServingNode]) -> CreateAclsResponse:
    """Add the valid access control entries in one metadata write; each entry has its own result."""
    if context.node.authorizer is None:
        refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(results=[refused] * len(request.creations))
    image = context.node.cluster.security
    results: list[AclCreationResult] = []
    wanted: dict[Acl, None] = {}
    known = set(image.acls.values())
    for creation in request.creations:
        acl = _acl(creation, context.version)
        code, reason = _refusal(acl, context.node)
        if reason is None and acl not in known:
            if len(wanted) >= ACL_RECORDS_MAX:
                code, reason = ErrorCode.INVALID_REQUEST, TOO_MANY
            elif len(known) + len(wanted) >= ACLS_MAX:
                code = ErrorCode.INVALID_REQUEST
                reason = f"there are {ACLS_MAX} entries, and no more can be had"
            else:
                wanted[acl] = None
        results.append(AclCreationResult(error_code=code, error_message=reason or ""))
    records = [record_of(acl) for acl in wanted]
    try:
        context.node.cluster.alter(records, context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        for result in results:
            if not result.error_code:
                result.error_code, result.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
        return CreateAclsResponse(results=results)
    for acl in wanted:
        warning = warning_of(acl)
        if warning is not None:
            context.node.limited_log.once(30, f"an access control entry for {acl.principal}: {warning}")
    return CreateAclsResponse(results=results)


def _refusal(acl: Acl, node: ServingNode) -> tuple[ErrorCode, str | None]:
    """Return error and message for an ACL entry that cannot be created; (NONE, None) if it can be.

    Since Apache Kafka 4.4 a host may be a network in CIDR notation. Earlier releases accept any text.
    """
    reason = why_invalid(acl)
    if reason is None and node.config.behaves_since(*NETWORKS_SINCE):
        if not acl.host:
            reason = "Host pattern cannot be null or empty"
        elif "/" in acl.host:
            if metadata_level(node.cluster.features) < NETWORKS_LEVEL:
                return ErrorCode.UNSUPPORTED_VERSION, NO_NETWORKS
            if network_of(acl.host) is None:
                reason = f"Invalid CIDR notation '{acl.host}': it is no network, such as 10.0.0.0/8"
    return (ErrorCode.NONE if reason is None else ErrorCode.INVALID_REQUEST), reason


def _acl(creation: AclCreation, version: int) -> Acl:
    pattern = creation.resource_pattern_type if version >= PATTERNS_SINCE else PatternType.LITERAL
    return Acl(
        creation.resource_type,
        creation.resource_name,
        pattern,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def delete_acls(request: DeleteAclsRequest, context: Context[ServingNode]) -> DeleteAclsResponse:
    """Remove the entries that each filter selects.

    An entry that two filters select is in the results of both filters.
    """
    if context.node.authorizer is None:
        refused = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
    image = context.node.cluster.security
    context.begin_claims()
    removed: dict[bytes, None] = {}
    results: list[DeleteAclsFilterResult] = []
    for each in request.filters:
        pattern = each.pattern_type_filter if context.version >= PATTERNS_SINCE else PatternType.LITERAL
        wanted = AclFilter(
            each.resource_type_filter,
            each.resource_name_filter,
            pattern,
            each.principal_filter,
            each.host_filter,
            each.operation,
            each.permission_type,
        )
        if wanted.has_unknown:
            results.append(
                DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=UNKNOWN_CODE)
            )
            continue
        found = {acl_id: acl for acl_id, acl in image.acls.items() if wanted.selects(acl)}
        if len(removed | dict.fromkeys(found)) > ACL_RECORDS_MAX:
            results.append(
                DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_MANY)
            )
            continue
        removed.update(dict.fromkeys(found))
        result = DeleteAclsFilterResult(error_message=None)
        for acl in dict.fromkeys(found.values()):
            context.claim(ENTRY_BYTES + len(acl.resource_name) + len(acl.principal) + len(acl.host))
            result.matching_acls.append(
                DeleteAclsMatchingAcl(
                    error_message=None,
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
            )
        results.append(result)
    records: list[Message] = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]
    try:
        context.node.cluster.alter(records, context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        failed = DeleteAclsFilterResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(error), matching_acls=[]
        )
        return DeleteAclsResponse(filter_results=[failed] * len(request.filters))
    return DeleteAclsResponse(filter_results=results)
