"""UpdateFeatures (57): set the finalized levels of features (KIP-584).

v0 allows downgrades by a flag, v1 by an upgrade type, and may only validate; v2 has no results for single
features. Before Apache Kafka 4.0 a feature that cannot be updated is an error of its own result alone. Only
one level of `metadata.version` is accepted; `transaction.version` may be 0 to 2, and
`eligible.leader.replicas.version`, `group.version` and `share.version` 0 or 1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.metadata.image import (
    METADATA_FEATURE,
    METADATA_VERSION,
    OTHER_FEATURES,
)
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

NO_RESULTS_SINCE = 2

WHOLE_FAILURE_SINCE = (4, 0)
"""The first release of Apache Kafka in which one feature's error is that of the answer, without results, in
every version."""

WHOLE_UPDATE_FAILED = "The update failed for all features since the following feature had an error:"


def update_features(request: UpdateFeaturesRequest, context: Context[ServingNode]) -> UpdateFeaturesResponse:
    """Check every update of a feature; apply the updates if all are valid."""
    times = Counter(update.feature for update in request.feature_updates)
    results = []
    failure: KafkaError | None = None
    for update in once(request.feature_updates, lambda update: update.feature):
        result = UpdatableFeatureResult(feature=update.feature, error_message=None)
        try:
            _check(update, times[update.feature])
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
    profile = context.node.profile
    if failure is None or (profile is not None and profile.numbers < WHOLE_FAILURE_SINCE):
        response.results = results if context.version < NO_RESULTS_SINCE else []
    else:
        response.error_code = failure.code
        response.error_message = f"{WHOLE_UPDATE_FAILED} {failure.detail}"
    return response


def _check(update: FeatureUpdateKey, times: int) -> None:
    name, level = update.feature, update.max_version_level
    if times > 1:
        raise error_for(ErrorCode.INVALID_REQUEST, f"feature {name!r} is named more than once")
    if 0 <= level <= OTHER_FEATURES.get(name, -1):
        return
    if name != METADATA_FEATURE or level != METADATA_VERSION:
        raise error_for(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {level} for feature {name}. "
            f"This broker supports {METADATA_FEATURE} {METADATA_VERSION} only.",
        )
