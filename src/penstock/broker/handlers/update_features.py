"""UpdateFeatures (57): set the finalized levels of features (KIP-584).

v0 allows downgrades with a flag, v1 with an upgrade type, and v1 adds `validate_only`; v2 has no results for
single features. Before Apache Kafka 4.0, only the result of the feature that cannot be updated has an error.
A lower level needs a downgrade, a higher one an upgrade. Besides the present level, one other level of
`metadata.version` is accepted; `transaction.version` and `share.version` may be 0 to 2,
`eligible.leader.replicas.version`, `group.version` and `streams.version` 0 or 1. A broker that behaves like a
Kafka release has the levels of that release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.api_versions import other_features
from penstock.broker.metadata.image import (
    ELR_FEATURE,
    KRAFT_FEATURE,
    METADATA_FEATURE,
    METADATA_VERSION,
    ON_UNLESS_NAMED,
    metadata_level,
)
from penstock.broker.metadata.metadata_log import ELIGIBLE_REPLICAS_SINCE
from penstock.broker.requests.repetition import once
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from penstock.protocol.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

logger = logger_named("penstock.broker")

KINDS_SINCE = 1
"""The first version of UpdateFeatures with upgrade types. In v0, a flag allows a downgrade."""

UPGRADE, DOWNGRADES = 1, (2, 3)
"""The codes of upgrade types: upgrade, and safe and unsafe downgrade. Both downgrades have the same
effect: neither changes existing records.
"""

NO_RESULTS_SINCE = 2

WHOLE_FAILURE_SINCE = (4, 0)
"""The first release of Apache Kafka in which the error of one feature becomes the top-level error of
the response, in every version of the API. The response then has no results for single features.
"""

WHOLE_UPDATE_FAILED = "The update failed for all features since the following feature had an error:"


def update_features(request: UpdateFeaturesRequest, context: Context[ServingNode]) -> UpdateFeaturesResponse:
    """Check every update of a feature; apply the updates if all are valid."""
    times = Counter(update.feature for update in request.feature_updates)
    results = []
    failure: KafkaError | None = None
    for update in once(request.feature_updates, lambda update: update.feature):
        result = UpdatableFeatureResult(feature=update.feature, error_message=None)
        try:
            _check(update, times[update.feature], context)
        except KafkaError as error:
            failure = failure or error
            result.error_code, result.error_message = error.code, error.detail
        results.append(result)
    response = UpdateFeaturesResponse(error_message=None)
    if failure is None and not request.validate_only:
        levels = {update.feature: update.max_version_level for update in request.feature_updates}
        try:
            context.node.cluster.set_features(levels, context.now_ms)
        except StorageError as error:
            logger.error("%s", error)
            response.error_code, response.error_message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    if failure is None or not context.node.config.behaves_since(*WHOLE_FAILURE_SINCE):
        response.results = results if context.version < NO_RESULTS_SINCE else []
    else:
        response.error_code = failure.code
        response.error_message = f"{WHOLE_UPDATE_FAILED} {failure.detail}"
    return response


def _check(update: FeatureUpdateKey, times: int, context: Context[ServingNode]) -> None:
    name, level = update.feature, update.max_version_level
    if times > 1:
        raise error_for(ErrorCode.INVALID_REQUEST, f"feature {name!r} is named more than once")
    node, kind = context.node, _kind(update, context.version)
    why = _why_invalid(name, level, kind, node.cluster.features, other_features(node.profile))
    if why is not None:
        raise error_for(
            ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {why}"
        )


def _kind(update: FeatureUpdateKey, version: int) -> int:
    """Return the upgrade type of an update: `UPGRADE`, or one of `DOWNGRADES`."""
    if version >= KINDS_SINCE:
        return update.upgrade_type
    return DOWNGRADES[0] if update.allow_downgrade else UPGRADE


def _why_invalid(
    name: str, level: int, kind: int, features: Mapping[str, int], others: Mapping[str, int]
) -> str | None:
    """Return the reason why a feature cannot be set to a level, or None if it can be set.

    `others` are the features beside `metadata.version`, with their highest levels.
    """
    if kind != UPGRADE and kind not in DOWNGRADES:
        return "The controller does not support the given upgrade type."
    is_metadata = name == METADATA_FEATURE
    first = others.get(name, 0) if name in ON_UNLESS_NAMED else 0
    present = metadata_level(features) if is_metadata else features.get(name, first)
    supported = {present, METADATA_VERSION} if is_metadata else range(others.get(name, -1) + 1)
    if name == KRAFT_FEATURE:
        return None if level == 0 else "The quorum has one voter, which stays: the level is 0."
    if level not in supported:
        if is_metadata:
            return f"This broker supports {METADATA_FEATURE} {METADATA_VERSION} only."
        if not supported:
            return "This broker does not support this feature."
        return f"This broker supports the levels 0 to {others[name]} of it."
    if level < present and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or"
            " unsafe downgrade."
        )
    if level < present and is_metadata:
        return f"Metadata have been written at level {present}, which cannot be taken back."
    if level > present and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    if name == ELR_FEATURE and level and metadata_level(features) < ELIGIBLE_REPLICAS_SINCE:
        return (
            f"{name} could not be set to {level} because it depends on {METADATA_FEATURE} level"
            f" {ELIGIBLE_REPLICAS_SINCE}"
        )
    return None
