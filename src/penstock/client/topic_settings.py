"""Settings of a topic that the client itself looks at: whether it is compacted, how long records stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.client.answers import only
from penstock.errors import PenstockError, UnsupportedVersionError
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)

if TYPE_CHECKING:
    from penstock.client.client import AsyncClient
    from penstock.protocol.messages.describe_configs_response import DescribeConfigsResponse

TOPIC_RESOURCE = 2

COMPACT = "compact"


async def topic_settings(
    client: AsyncClient, topic: str, names: Sequence[str], timeout_s: float | None = None
) -> dict[str, str]:
    """Return the values of some settings of a topic, as texts; {} where the broker does not tell them.

    Brokers before 0.11 cannot be asked, and others may not tell this client. The answer is waited for up to
    `timeout_s` seconds, by default ``request.timeout.ms``.

    Raises:
        NetworkError, RequestTimeoutError: no answer.
        ProtocolViolationError: an answer that is none.
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
    """Whether compaction removes records of a topic; None where that cannot be found out now."""
    try:
        policy = (await topic_settings(client, topic, ["cleanup.policy"])).get("cleanup.policy")
    except PenstockError:
        return None
    return None if policy is None else COMPACT in policy
