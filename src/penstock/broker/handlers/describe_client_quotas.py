"""DescribeClientQuotas (48): the quotas of the entities that match a filter. v1 is flexible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.requests.quotas import ENTITY_TYPES, IP, IP_STANDS_ALONE, Filter, matching
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from penstock.protocol.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY = range(3)


def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: Context[ServingNode]
) -> DescribeClientQuotasResponse:
    """Return the quotas of the entities that match the filter.

    Errors: UNSUPPORTED_VERSION (35) for an unknown entity type, INVALID_REQUEST (42) for an invalid filter.
    """
    try:
        filters = _filters(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.detail, entries=None)
    quotas = context.node.cluster.quotas
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in sorted(quotas[entity].items())],
            )
            for entity in matching(quotas, filters, strict=request.strict)
        ],
    )


def _filters(components: Sequence[ComponentData]) -> list[Filter]:
    found: dict[str, Filter] = {}
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind or kind in found:
            raise error_for(ErrorCode.INVALID_REQUEST, f"entity type '{kind}' is empty, or named twice")
        if kind not in ENTITY_TYPES:
            raise error_for(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if match_type not in (MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY) or (component.match is None) == (
            match_type == MATCH_EXACT
        ):
            raise error_for(
                ErrorCode.INVALID_REQUEST,
                f"match type {match_type} of '{kind}' does not go with the match {component.match!r}",
            )
        # The match of the default is None, which is its name among entities, too.
        found[kind] = Filter(kind, None if match_type == MATCH_ANY else frozenset((component.match,)))
    if IP in found and len(found) > 1:
        raise error_for(ErrorCode.INVALID_REQUEST, f"Invalid entity filter component {IP_STANDS_ALONE}")
    return list(found.values())
