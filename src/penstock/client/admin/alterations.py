"""What an admin client changes about topics and brokers besides their existence: settings, sizes, beginnings.

For asyncio. A mixin of `AsyncAdmin`, which brings the connection. Every change may be repeated without harm
when an answer was lost, and is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.arguments import (
    broker_id,
    by_partition,
    checked,
    flag,
    names,
    optional,
    topic_name,
    whole,
)
from penstock.client.arguments import text as text_argument
from penstock.client.cluster.answers import check_complete, only
from penstock.client.cluster.client import CONTROLLER
from penstock.errors import AuthorizationError, ConfigError, KafkaError
from penstock.model import TopicPartition, setting_text
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.config import ClientConfig
    from penstock.protocol.messages.create_partitions_response import CreatePartitionsResponse
    from penstock.protocol.messages.delete_records_response import DeleteRecordsResponse
    from penstock.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
    from penstock.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

TOPIC_RESOURCE, BROKER_RESOURCE, METRICS_RESOURCE = 2, 4, 16

SET, DELETE, APPEND, SUBTRACT = range(4)
"""What can be done to a setting, as IncrementalAlterConfigs numbers it."""

HIGH_WATERMARK = -1
"""Stands for all records where `delete_records` takes an offset."""


class LogDirectory(NamedTuple):
    """A data directory of a broker. Sizes in bytes; -1 where the broker does not report them."""

    broker: int
    path: str
    partitions: Mapping[TopicPartition, int]
    """The size of every partition in it."""
    total_bytes: int = -1
    usable_bytes: int = -1


class ChangeAdministration:
    """Settings, partitions, deletions."""

    config: ClientConfig
    _client: AsyncClient

    async def _ready(self) -> None:
        await self._client.bootstrap()

    async def create_partitions(self, topic: str, count: int) -> None:
        """Let a topic grow to `count` partitions altogether.

        Records stay where they are: keys that come from now on may go to other partitions.

        Raises:
            KafkaError: there is no such topic (3), or it has as many already (37).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        topic, count = topic_name(topic), whole(count, "the number of partitions")
        await self._ready()
        tries = 0

        async def attempt() -> None:
            nonlocal tries
            tries += 1
            request = CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)],
                timeout_ms=int(self.config.request_timeout_ms),
            )
            peer = await self._client.peer(CONTROLLER)
            answer: CreatePartitionsResponse = await peer.request(request, self._client.request_timeout_s)
            result = only(answer.results, peer.connection.address, "CreatePartitions")
            # What an earlier attempt has done, although its answer was lost, is not an error.
            if not (tries > 1 and result.error_code == ErrorCode.INVALID_PARTITIONS):
                _check(result.error_code, f"topic {topic!r}", result.error_message)

        await self._client.retrying("creating partitions", attempt)
        await self._client.retrying("waiting for the new partitions", lambda: self._client.refresh([topic]))

    @checked(
        all_brokers=flag,
        validate_only=flag,
        broker=optional(broker_id),
        client_metrics=optional(text_argument),
    )
    async def alter_config(
        self,
        topic: str | None = None,
        *,
        broker: int | None = None,
        all_brokers: bool = False,
        client_metrics: str | None = None,
        set: Mapping[str, object] | None = None,
        delete: Collection[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change settings of a topic, of one broker, or of all brokers: all the changes or none.

        `client_metrics` is the name of a subscription to metrics of clients (KIP-714), whose settings are
        `metrics`, `interval.ms` and `match`; it is there as long as it has settings.

        `set` gives values, `delete` goes back to defaults, `append` and `subtract` change the items of
        lists such as `cleanup.policy`.

        Raises:
            KafkaError: there is no such topic (3), a name or a value is wrong (40), or the setting cannot
                be changed while a broker runs (42).
            UnsupportedVersionError: the broker is older than 2.3.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        if (topic is not None) + (broker is not None) + all_brokers + (client_metrics is not None) != 1:
            raise ConfigError(
                "alter_config() takes the name of a topic, or broker=, all_brokers=True or client_metrics="
            )
        if topic is not None:
            topic_name(topic)
        for argument, given in (("set", set), ("append", append), ("subtract", subtract)):
            if given is not None and not isinstance(given, Mapping):
                raise ConfigError(f"{argument} is {given!r}: a mapping of settings is needed")
        delete = names(delete, "alter_config(delete=...)", "setting")
        texts = [(name, SET, setting_text(value)) for name, value in (set or {}).items()]
        texts += [(name, APPEND, setting_text(value)) for name, value in (append or {}).items()]
        texts += [(name, SUBTRACT, setting_text(value)) for name, value in (subtract or {}).items()]
        changes = [
            AlterableConfig(name=name, config_operation=change, value=text) for name, change, text in texts
        ]
        changes += [AlterableConfig(name=name, config_operation=DELETE, value=None) for name in delete]
        kind, name = BROKER_RESOURCE, "" if all_brokers else str(broker)
        if topic is not None:
            kind, name = TOPIC_RESOURCE, topic
        elif client_metrics is not None:
            kind, name = METRICS_RESOURCE, client_metrics
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=changes,
                )
            ],
            validate_only=validate_only,
        )
        await self._ready()
        if broker is not None:
            await self._client.check_node(broker)

        async def attempt() -> None:
            node = broker if broker is not None else CONTROLLER
            peer = await self._client.peer(node)
            answer: IncrementalAlterConfigsResponse = await peer.request(
                request, self._client.request_timeout_s
            )
            result = only(answer.responses, peer.connection.address, "IncrementalAlterConfigs")
            _check(result.error_code, repr(name), result.error_message)

        await self._client.retrying("changing settings", attempt)

    async def delete_records(
        self, offsets: Mapping[TopicPartition | tuple[str, int], int]
    ) -> dict[TopicPartition, int]:
        """Delete the records below an offset of each partition; return where each begins now.

        The offset `HIGH_WATERMARK` (-1) deletes everything there is.

        Raises:
            KafkaError: an offset is past the end (1), there is no such partition (3), or the topic is
                compacted (44).
            UnsupportedVersionError: the broker is older than 0.11.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        wanted = by_partition(offsets, "delete_records()")
        for tp, offset in wanted.items():
            wanted[tp] = whole(offset, f"the offset for {tp}")
        await self._ready()
        return await self._client.retrying("deleting records", lambda: self._delete_records(wanted))

    async def _delete_records(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        by_leader: dict[int, dict[str, DeleteRecordsTopic]] = {}
        for tp, offset in wanted.items():
            topics = by_leader.setdefault(await self._client.leader(tp), {})
            topic = topics.setdefault(tp.topic, DeleteRecordsTopic(name=tp.topic, partitions=[]))
            topic.partitions.append(DeleteRecordsPartition(partition_index=tp.partition, offset=offset))
        answers: list[DeleteRecordsResponse] = await asyncio.gather(
            *(
                self._client.request(
                    DeleteRecordsRequest(
                        topics=list(topics.values()), timeout_ms=int(self.config.request_timeout_ms)
                    ),
                    leader,
                )
                for leader, topics in by_leader.items()
            )
        )
        found: dict[TopicPartition, int] = {}
        for answer in answers:
            for answered in answer.topics:
                for result in answered.partitions:
                    tp = TopicPartition(answered.name, result.partition_index)
                    _check(result.error_code, str(tp), None)
                    found[tp] = result.low_watermark
        for tp in wanted:
            if tp not in found:
                broker = self._client.address_of(await self._client.leader(tp))
                check_complete([tp], found, broker, "DeleteRecords")
        return found

    @checked(broker=optional(broker_id))
    async def describe_log_dirs(self, broker: int | None = None) -> list[LogDirectory]:
        """The data directories of one broker, or of all, with the size of every partition.

        Raises:
            KafkaError: a directory cannot be read (56).
            UnsupportedVersionError: the broker is older than 1.0.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        await self._ready()
        await self._client.retrying("describing directories", self._client.refresh)
        if broker is not None:
            await self._client.check_node(broker)
        brokers = sorted(self._client.cluster.nodes) if broker is None else [broker]
        found: list[LogDirectory] = []
        for node in brokers:
            answer: DescribeLogDirsResponse = await self._client.request(
                DescribeLogDirsRequest(topics=None), node
            )
            _check(answer.error_code, f"broker {node}", None)
            for result in answer.results:
                _check(result.error_code, result.log_dir, None)
                sizes = {
                    TopicPartition(topic.name, partition.partition_index): partition.partition_size
                    for topic in result.topics
                    for partition in topic.partitions
                }
                found.append(
                    LogDirectory(node, result.log_dir, sizes, result.total_bytes, result.usable_bytes)
                )
        return found


def _check(code: int, what: str, message: str | None) -> None:
    """Raise the error of an answer, with the broker's own message where it has one."""
    if not code:
        return
    plain = error_for(code, what)
    if isinstance(plain, AuthorizationError):
        raise plain  # it has advice, brokers have none
    text = message or str(plain)
    label = "" if plain.name in text else f" ({plain.name})"
    # A topic that does not exist will not come to be by waiting.
    retriable = plain.retriable and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    raise KafkaError(code, plain.name, f"{text}{label}", retriable=retriable)
