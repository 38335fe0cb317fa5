"""Reads the settings of a topic that the client itself uses: cleanup policy and retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.client.cluster.retry import only
from penstock.errors import PenstockError, UnsupportedVersionError
from penstock.protocol.field_values import TOPIC_RESOURCE
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.messages.describe_configs_response import DescribeConfigsResponse

COMPACT = "compact"


async def topic_settings(
    client: AsyncClient, topic: str, names: Sequence[str], timeout_s: float | None = None
) -> dict[str, str]:
    """Return the values of some settings of a topic as text; an empty dict if the broker returns none.

    Brokers before 0.11 have no DescribeConfigs, and others may not authorize this client. The client waits up
    to `timeout_s` seconds for the response, by default ``request.timeout.ms``.

    Raises:
        NetworkError, RequestTimeoutError: no response.
        ProtocolViolationError: the response makes no sense.
    """
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=list(names)
            )
        ]
    )
    try:
        peer = await client.peer()
        answer: DescribeConfigsResponse = await peer.request(request, timeout_s or client.request_timeout_s)
    except UnsupportedVersionError:
        return {}
    result = only(answer.results, peer.connection.address, "DescribeConfigs")
    if result.error_code:
        return {}
    return {setting.name: setting.value for setting in result.configs if setting.value is not None}


async def is_compacted(client: AsyncClient, topic: str) -> bool | None:
    """Return True if a topic is compacted, False if it is not, None if the setting cannot be read now."""
    try:
        policy = (await topic_settings(client, topic, ["cleanup.policy"])).get("cleanup.policy")
    except PenstockError:
        return None
    return None if policy is None else COMPACT in policy


RETENTION_SETTINGS = ("cleanup.policy", "message.timestamp.type", "retention.ms")


def retention_warning(topic: str, settings: Mapping[str, str], oldest_ms: int, now_ms: int) -> str | None:
    """Return a warning if retention will remove records as old as `oldest_ms`, else None.

    `settings` has the topic's `RETENTION_SETTINGS`, as far as the broker returns them.
    """
    retention = settings.get("retention.ms", "-1")
    retention_ms = int(retention) if retention.lstrip("-").isdigit() else -1
    is_deleted = "delete" in settings.get("cleanup.policy", "delete")
    is_their_time = settings.get("message.timestamp.type", "CreateTime") == "CreateTime"
    if retention_ms < 0 or not is_deleted or not is_their_time or now_ms - oldest_ms <= retention_ms:
        return None
    oldest = (
        str(datetime.fromtimestamp(oldest_ms // 1000, UTC).date()) if 0 <= oldest_ms < 2**45 else "long ago"
    )
    days = f"{retention_ms / 86_400_000:.3g} days"
    return (
        f"topic {topic!r} keeps records for retention.ms = {retention_ms} ({days}), and some of those "
        f"written are of {oldest}: the broker will remove them. Set retention.ms to -1 before writing, "
        "or message.timestamp.type to LogAppendTime"
    )
