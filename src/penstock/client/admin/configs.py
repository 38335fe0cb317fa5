"""The asyncio admin calls that describe and change settings: topics, brokers, groups, client metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.admin.refusals import refusal
from penstock.client.cluster.client import ANY_NODE, CONTROLLER
from penstock.client.cluster.metadata import no_such_topic
from penstock.client.cluster.retry import only
from penstock.model import setting_text
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import BROKER_RESOURCE, GROUP_RESOURCE, METRICS_RESOURCE, TOPIC_RESOURCE
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.messages.describe_configs_response import DescribeConfigsResponse
    from penstock.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse


SET, DELETE, APPEND, SUBTRACT = range(4)
"""The operation codes of IncrementalAlterConfigs."""

DEFAULT_SOURCE = 5
"""The code that marks a setting as having its default value in DescribeConfigs responses (KIP-226)."""


class ConfigValue(NamedTuple):
    """The value of a setting and its source. `value` is None if the setting is sensitive."""

    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool


class Resource(NamedTuple):
    """A topic, broker, group or client metrics subscription: a resource that has settings.

    The name of a broker is its id as text; an empty name stands for all brokers.
    """

    kind: int
    name: str

    @property
    def broker(self) -> int | None:
        """The broker id if this resource is a single broker, else None."""
        return int(self.name) if self.kind == BROKER_RESOURCE and self.name else None


def resource_of(
    topic: str | None,
    broker: int | None,
    client_metrics: str | None = None,
    group: str | None = None,
) -> Resource:
    """Return the resource named by the one argument that is not None; all brokers if all are None."""
    if group is not None:
        return Resource(GROUP_RESOURCE, group)
    if topic is not None:
        return Resource(TOPIC_RESOURCE, topic)
    if client_metrics is not None:
        return Resource(METRICS_RESOURCE, client_metrics)
    return Resource(BROKER_RESOURCE, "" if broker is None else str(broker))


def changes_of(
    values: Mapping[str, object],
    defaults: Iterable[str],
    appended: Mapping[str, object],
    subtracted: Mapping[str, object],
) -> list[AlterableConfig]:
    """Return the entries of an IncrementalAlterConfigs request.

    `values` sets settings, `defaults` names settings to reset. `appended` and `subtracted` have the items to
    add to, and to remove from, settings that are lists.
    """
    given = ((SET, values), (APPEND, appended), (SUBTRACT, subtracted))
    changes = [
        AlterableConfig(name=name, config_operation=change, value=setting_text(value))
        for change, settings in given
        for name, value in settings.items()
    ]
    return changes + [AlterableConfig(name=name, config_operation=DELETE, value=None) for name in defaults]


class ConfigAdministration:
    """Describes and changes settings, through the connections of a client that has been started.

    Each call raises KafkaError if a broker refuses, and NetworkError or RequestTimeoutError if no broker
    answers in time.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def describe(self, resource: Resource) -> dict[str, ConfigValue]:
        """Return a resource's settings, as a dict from setting name to value and source."""
        return await self._client.retrying("describing settings", lambda: self._describe(resource))

    async def _describe(self, resource: Resource) -> dict[str, ConfigValue]:
        client = self._client
        asked = DescribeConfigsResource(
            resource_type=resource.kind, resource_name=resource.name, configuration_keys=None
        )
        peer = await client.peer(ANY_NODE if resource.broker is None else resource.broker)
        answer: DescribeConfigsResponse = await peer.request(
            DescribeConfigsRequest(resources=[asked]), client.request_timeout_s
        )
        result = only(answer.results, peer.connection.address, "DescribeConfigs")
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and resource.kind == TOPIC_RESOURCE:
            await client.refresh(all_topics=True)
            raise no_such_topic(resource.name, client.cluster)
        if result.error_code:
            raise refusal(result.error_code, repr(result.resource_name), result.error_message)
        return {
            setting.name: ConfigValue(
                setting.value,
                setting.is_default or setting.config_source == DEFAULT_SOURCE,
                setting.read_only,
                setting.is_sensitive,
            )
            for setting in result.configs
        }

    async def alter(
        self, resource: Resource, changes: Sequence[AlterableConfig], *, validate_only: bool
    ) -> None:
        """Change settings of a resource. Either all changes apply or none."""
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.kind, resource_name=resource.name, configs=list(changes)
                )
            ],
            validate_only=validate_only,
        )

        async def attempt() -> None:
            peer = await self._client.peer(CONTROLLER if resource.broker is None else resource.broker)
            answer: IncrementalAlterConfigsResponse = await peer.request(
                request, self._client.request_timeout_s
            )
            result = only(answer.responses, peer.connection.address, "IncrementalAlterConfigs")
            if result.error_code:
                raise refusal(result.error_code, repr(resource.name), result.error_message)

        await self._client.retrying("changing settings", attempt)
