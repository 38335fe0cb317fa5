"""ApiVersions (18): the APIs that this broker supports, with their versions.

The response lists the APIs that have a handler. v1 adds the throttle time; v3 the client's software name and
version, and features; v4 may list features whose lowest version is 0; v5 the cluster id and node id that the
client expects, and REBOOTSTRAP_REQUIRED (129) if this broker has others (KIP-1242). An unsupported version is
answered in version 0 with UNSUPPORTED_VERSION (35) and one entry, the versions of ApiVersions itself
(KIP-511).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.image import (
    KRAFT_FEATURE,
    KRAFT_VERSION,
    METADATA_FEATURE,
    METADATA_VERSION,
    ON_UNLESS_NAMED,
    OTHER_FEATURES,
    SHARE_FEATURE,
)
from penstock.broker.requests.routes import Route
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from penstock.protocol.since import API_VERSIONS_CLUSTER_ID_SINCE, API_VERSIONS_SOFTWARE_SINCE

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.requests.release_profiles import Profile

FEATURES_SINCE = 3

LOWEST_0_SINCE = 4
"""The first version of ApiVersions whose clients accept features with 0 as the lowest level."""

SHARES_SINCE = (4, 2)
"""The first release of Apache Kafka in which share groups (KIP-932) and streams groups (KIP-1071) are on
by default.
"""

KRAFT_FEATURE_SINCE = (3, 9)
"""The first release of Apache Kafka that lists `kraft.version`."""

SOFTWARE_CHARACTERS_MAX = 100
"""The maximum number of characters of a client's software name, and of its software version, that a
session stores.
"""

METADATA_LEVELS = (7, METADATA_VERSION)
"""The lowest and the highest level of `metadata.version` whose records this broker can read.

The lowest is 3.3-IV3, the first level without ZooKeeper.
"""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(request: ApiVersionsRequest | None, context: Context[ServingNode]) -> ApiVersionsResponse:
    """List every API that has a handler. `request` is None if the request has an unsupported version."""
    routes, profile = context.node.routes, context.node.profile
    if request is None:
        if profile is not None and not profile.lists_own_api:
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        own = routes[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_entry(own)])
    if context.version >= API_VERSIONS_SOFTWARE_SINCE:
        if not _names_software(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if context.version >= API_VERSIONS_CLUSTER_ID_SINCE and _expects_other(request, context.node):
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        session = context.session
        session.software_name = request.client_software_name[:SOFTWARE_CHARACTERS_MAX]
        session.software_version = request.client_software_version[:SOFTWARE_CHARACTERS_MAX]
    if profile is not None:
        offers = profile.offers(routes).items()
        entries = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in offers]
        response = ApiVersionsResponse(api_keys=entries)
    else:
        response = ApiVersionsResponse(api_keys=[_entry(routes[key]) for key in sorted(routes)])
    if context.version >= FEATURES_SINCE and (profile is None or profile.metadata_level):
        _add_features(response, context)
    return response


def _add_features(response: ApiVersionsResponse, context: Context[ServingNode]) -> None:
    """Add to a response the supported levels of features, and the cluster's finalized levels (KIP-584)."""
    node = context.node
    cluster, profile = node.cluster, node.profile
    low, high = METADATA_LEVELS
    if profile is not None:
        high = profile.metadata_level
        low = low if node.config.behaves_since(4, 0) else 1
    response.supported_features = [
        SupportedFeatureKey(name=METADATA_FEATURE, min_version=low, max_version=high)
    ]
    others = other_features(profile)
    if context.version >= LOWEST_0_SINCE:
        voters = {KRAFT_FEATURE: KRAFT_VERSION} if node.config.behaves_since(*KRAFT_FEATURE_SINCE) else {}
        response.supported_features.extend(
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in (others | voters).items()
        )
    response.finalized_features_epoch = cluster.metadata_end_offset - 1
    levels = {name: min(level, others.get(name, high)) for name, level in cluster.features.items()}
    for name, level in ON_UNLESS_NAMED.items():
        levels.setdefault(name, others.get(name, level))
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels.items()
        if name == METADATA_FEATURE or (name in others and level > 0)
    ]


def other_features(profile: Profile | None) -> dict[str, int]:
    """Return a release's features other than `metadata.version`, with their highest levels."""
    if profile is None:
        return dict(OTHER_FEATURES)
    if not profile.transaction_level:
        return {}
    others = {name: level for name, level in OTHER_FEATURES.items() if name not in ON_UNLESS_NAMED}
    if profile.share_level:
        others |= ON_UNLESS_NAMED | {SHARE_FEATURE: profile.share_level}
    return others


def _entry(route: Route) -> ApiVersion:
    return ApiVersion(api_key=route.key, min_version=route.min_version, max_version=route.max_version)


def _expects_other(request: ApiVersionsRequest, node: ServingNode) -> bool:
    """Return True if the request names another cluster, or another node of this one."""
    expected = request.cluster_id, request.node_id
    return request.cluster_id is not None and expected != (node.cluster.cluster_id, node.node_id)


def _names_software(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)
