"""A scripted broker on a real socket, with small logs in memory and any faults that a test sets up.

It runs on the test's own event loop. Each API has a normal answer. A test replaces the next answers with
`fail(key, code)`, `hang_up(key)`, `stay_silent(key)`, `send_garbage(key)` or `script(key, function)`, and all
answers with `always(key, function)` or `twist(key, function)`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from penstock.model import EARLIEST
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import RequestHeader, decode_request_header, encode_response
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from penstock.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.messages.list_groups_response import ListGroupsResponse
from penstock.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.messages.offset_fetch_response import OffsetFetchResponse
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.format.batch_header import HEADER_BYTES, read_header, set_base_offset

HANG_UP, SILENCE, NOTHING_DUE = object(), object(), object()
Answer = Any
Script = Callable[["FakeBroker", RequestHeader, Any], Answer]

SPOKEN = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.FIND_COORDINATOR,
)


class FakeLog:
    """The log of one partition: batches in offset order, with Kafka's checks of producer sequences."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = 0
        self.end = 0
        self.producers: dict[int, tuple[int, deque[tuple[int, int, int]]]] = {}

    def append(self, records: bytes) -> tuple[int, int]:
        """Append a batch; return the error code and the base offset.

        Duplicate and out-of-order sequences are treated as in Kafka.
        """
        if records[16] != 2:
            base = self.end
            self.batches.append(records)
            self.end += 1
            return 0, base
        header = read_header(records)
        if header.producer_id >= 0:
            epoch, seen = self.producers.get(header.producer_id, (header.producer_epoch, deque(maxlen=5)))
            if header.producer_epoch < epoch:
                return 47, -1
            if header.producer_epoch > epoch:
                if header.base_sequence:
                    return 45, -1
                seen = deque(maxlen=5)
            for first, last, base in seen:
                if (first, last) == (header.base_sequence, header.last_sequence):
                    return 0, base
            if seen and header.base_sequence != (seen[-1][1] + 1) & 0x7FFFFFFF:
                return 45, -1
            seen.append((header.base_sequence, header.last_sequence, self.end))
            self.producers[header.producer_id] = (header.producer_epoch, seen)
        base = self.end
        stored = bytearray(records)
        set_base_offset(stored, 0, base)
        self.batches.append(bytes(stored))
        self.end += header.record_count
        return 0, base

    def read(self, offset: int, size: int) -> bytes:
        """Return whole batches from the one with `offset` on: the first, and more up to `size` bytes."""
        out = b""
        for batch in self.batches:
            if len(batch) >= HEADER_BYTES and batch[16] == 2 and read_header(batch).next_offset <= offset:
                continue
            if batch[16] < 2 and int.from_bytes(batch[:8], "big") < offset:
                continue
            if out and len(out) + len(batch) > size:
                break
            out += batch
        return out


class FakeBroker:
    """A scripted broker for client tests.

    `topics` is a dict from topic name to number of partitions; this broker leads all of them.
    """

    def __init__(
        self, topics: dict[str, int] | None = None, versions: dict[ApiKey, tuple[int, int]] | None = None
    ) -> None:
        self.topics = {"t": 1} if topics is None else topics
        self.versions = {key: API_TABLE[key].versions for key in SPOKEN}
        if versions is not None:
            self.versions = versions
        self.logs: dict[tuple[str, int], FakeLog] = defaultdict(FakeLog)
        self.requests: list[tuple[RequestHeader, Any]] = []
        self.scripts: dict[ApiKey, deque[Script]] = defaultdict(deque)
        self.lies: dict[ApiKey, Script] = {}
        self.settings = {"cleanup.policy": "delete"}
        """The settings that DescribeConfigs returns for every topic."""
        self.port = 0
        self.node_id = 0
        self.leaders: dict[tuple[str, int], int] = {}
        self.brokers: list[tuple[int, str, int]] = []
        self.topic_ids = True
        self.next_producer_id = 100
        self.connections = 0
        self.failures: list[Exception] = []
        """The exceptions that were raised in the fake broker itself."""
        self.parked = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stuck: set[asyncio.StreamWriter] = set()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> FakeBroker:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        await asyncio.sleep(0.001)  # connections just accepted get as far as `_serve`
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0)
        self._server = None

    # -- faults

    def script(self, key: ApiKey, *outcomes: Script) -> None:
        """Answer the next requests of an API with these outcomes, one each, then as usual."""
        self.scripts[key].extend(outcomes)

    def always(self, key: ApiKey, outcome: Script) -> None:
        """Answer every request of an API with this outcome; offer all versions if it is not offered yet."""
        self.lies[key] = outcome
        self.versions.setdefault(key, API_TABLE[key].versions)

    def twist(self, key: ApiKey, change: Callable[[Any], object]) -> None:
        """Pass every usual answer of an API to `change`, which modifies it before it is sent."""

        async def twisted(broker: FakeBroker, header: RequestHeader, request: Any) -> Answer:
            answer = broker.answer(header, request)
            answer = await answer if isinstance(answer, Awaitable) else answer
            change(answer)
            return answer

        self.always(key, twisted)

    def fail(self, key: ApiKey, *codes: int) -> None:
        """Answer the next requests of an API with these error codes, in the API's error fields."""
        self.script(
            key,
            *(lambda broker, header, request, c=code: broker.answer(header, request, c) for code in codes),
        )

    def hang_up(self, key: ApiKey, times: int = 1) -> None:
        self.script(key, *[lambda *_: HANG_UP] * times)

    def stay_silent(self, key: ApiKey, times: int = 1) -> None:
        """Leave the next requests of an API unanswered.

        Later requests on their connection get no answer either, since answers keep the order of requests.
        """
        self.script(key, *[lambda *_: SILENCE] * times)

    def send_garbage(self, key: ApiKey, garbage: bytes) -> None:
        self.script(key, lambda *_: garbage)

    def asked(self, key: ApiKey) -> list[Any]:
        """Return all requests of one API that have arrived so far."""
        return [request for header, request in self.requests if header.api_key == key]

    # -- answers

    def answer(self, header: RequestHeader, request: Any, code: int = 0) -> Answer:
        return getattr(self, f"on_{ApiKey(header.api_key).name.lower()}")(header, request, code)

    def on_api_versions(self, header: RequestHeader, request: Any, code: int) -> Message:
        return ApiVersionsResponse(
            error_code=code,
            api_keys=[
                ApiVersion(api_key=k, min_version=v[0], max_version=v[1]) for k, v in self.versions.items()
            ],
        )

    def topic_id(self, name: str) -> bytes:
        return name.encode().ljust(16, b".")[:16] if self.topic_ids and name in self.topics else bytes(16)

    def on_metadata(self, header: RequestHeader, request: Any, code: int) -> Message:
        asked = None if request.topics is None else [topic.name for topic in request.topics]
        if asked is None or (header.api_version == 0 and not asked):
            asked = list(self.topics)
        brokers = self.brokers or [(self.node_id, "127.0.0.1", self.port)]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=n, host=h, port=p) for n, h, p in brokers],
            cluster_id="fake",
            controller_id=self.node_id,
            topics=[self._metadata_of(name, code) for name in asked],
        )

    def _metadata_of(self, name: str, code: int) -> MetadataResponseTopic:
        partitions = self.topics.get(name, 0)
        return MetadataResponseTopic(
            name=name,
            error_code=code or (0 if partitions else 3),
            topic_id=self.topic_id(name),
            partitions=[
                MetadataResponsePartition(
                    partition_index=p,
                    leader_id=self.leaders.get((name, p), self.node_id),
                    error_code=5 if self.leaders.get((name, p), 0) < 0 else 0,
                    replica_nodes=[self.node_id],
                    isr_nodes=[self.node_id],
                )
                for p in range(partitions if not code else 0)
            ],
        )

    def _name(self, topic: Any, attribute: str = "name") -> str:
        name: str = getattr(topic, attribute)
        return name or bytes(topic.topic_id).rstrip(b".").decode()

    def on_init_producer_id(self, header: RequestHeader, request: Any, code: int) -> Message:
        if code:
            return InitProducerIdResponse(error_code=code)
        if request.producer_id >= 0:
            return InitProducerIdResponse(
                producer_id=request.producer_id, producer_epoch=request.producer_epoch + 1
            )
        self.next_producer_id += 1
        return InitProducerIdResponse(producer_id=self.next_producer_id, producer_epoch=0)

    def on_produce(self, header: RequestHeader, request: Any, code: int) -> Answer:
        topics = []
        for topic in request.topic_data:
            name = self._name(topic)
            answers = []
            for p in topic.partition_data:
                error, base = (code, -1) if code else self.logs[name, p.index].append(bytes(p.records))
                answers.append(PartitionProduceResponse(index=p.index, error_code=error, base_offset=base))
            topics.append(
                TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=answers)
            )
        return ProduceResponse(responses=topics) if request.acks else NOTHING_DUE

    async def on_fetch(self, header: RequestHeader, request: Any, code: int) -> Message:
        answer = self._fetched(request, code)
        if not code and not any(p.records for t in answer.responses for p in t.partitions):
            self.parked.set()
            await asyncio.sleep(request.max_wait_ms / 1000)
            answer = self._fetched(request, code)
        return answer

    def _fetched(self, request: Any, code: int) -> FetchResponse:
        topics = []
        for topic in request.topics:
            name = self._name(topic, "topic")
            answers = []
            for p in topic.partitions:
                log = self.logs[name, p.partition]
                error = code or (0 if log.start <= p.fetch_offset <= log.end else 1)
                answers.append(
                    PartitionData(
                        partition_index=p.partition,
                        error_code=error,
                        high_watermark=log.end,
                        last_stable_offset=log.end,
                        log_start_offset=log.start,
                        records=b"" if error else log.read(p.fetch_offset, p.partition_max_bytes),
                    )
                )
            topics.append(FetchableTopicResponse(topic=name, topic_id=topic.topic_id, partitions=answers))
        return FetchResponse(responses=topics)

    def on_list_offsets(self, header: RequestHeader, request: Any, code: int) -> Message:
        topics = []
        for topic in request.topics:
            answers = []
            for p in topic.partitions:
                log = self.logs[topic.name, p.partition_index]
                offset = log.start if p.timestamp == EARLIEST else log.end
                told = ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=code)
                if header.api_version == 0:
                    told.old_style_offsets = [] if code else [offset]
                else:
                    told.offset = -1 if code else offset
                answers.append(told)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return ListOffsetsResponse(topics=topics)

    def on_describe_configs(self, header: RequestHeader, request: Any, code: int) -> Message:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    error_code=code,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=value)
                        for name, value in self.settings.items()
                        if name in (resource.configuration_keys or self.settings)
                    ],
                )
                for resource in request.resources
            ]
        )

    def on_find_coordinator(self, header: RequestHeader, request: Any, code: int) -> Message:
        found = {"error_code": code, "node_id": self.node_id, "host": "127.0.0.1", "port": self.port}
        if header.api_version < 4:
            return FindCoordinatorResponse(**found)
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key=key, **found) for key in request.coordinator_keys]
        )

    def on_offset_fetch(self, header: RequestHeader, request: Any, code: int) -> Message:
        return OffsetFetchResponse(topics=[])

    def on_list_groups(self, header: RequestHeader, request: Any, code: int) -> Message:
        return ListGroupsResponse(error_code=code)

    # -- the wire

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            self.failures.append(error)
        finally:
            self._tasks.discard(task)
            self._stuck.discard(writer)
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        header, position = decode_request_header(memoryview(frame))
        key = ApiKey(header.api_key)
        request, _ = codec_for(API_TABLE[key].request, header.api_version).decode(memoryview(frame), position)
        self.requests.append((header, request))
        scripted = self.scripts[key]
        spoken = self.versions.get(key)
        version = header.api_version
        answer: Answer
        if scripted:
            answer = scripted.popleft()(self, header, request)
        elif key in self.lies:
            answer = self.lies[key](self, header, request)
        elif spoken is None:
            return False
        elif not spoken[0] <= version <= spoken[1]:
            if key != ApiKey.API_VERSIONS:
                return False
            version = 0
            answer = self.answer(header, request, 35)
        else:
            answer = self.answer(header, request)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is HANG_UP:
            return False
        if answer is SILENCE:
            self._stuck.add(writer)
        if answer is NOTHING_DUE or writer in self._stuck:
            return True
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            writer.writelines(bytes(c) for c in encode_response(answer, version, header.correlation_id))
        await writer.drain()
        return True


@asynccontextmanager
async def fake_broker(
    topics: dict[str, int] | None = None,
    versions: dict[ApiKey, tuple[int, int]] | None = None,
    *,
    without: Iterable[ApiKey] = (),
) -> AsyncIterator[FakeBroker]:
    """Run a fake broker for the length of a block.

    `without` lists APIs that it does not offer; `versions` replaces some version ranges.
    """
    broker = FakeBroker(topics)
    broker.versions.update(versions or {})
    for key in without:
        broker.versions.pop(key, None)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()
    for failure in broker.failures:
        raise failure


def limited_to(release: str) -> dict[ApiKey, tuple[int, int]]:
    """Return the API versions of a Kafka release, as far as a client needs them."""
    return {
        "0.8": dict.fromkeys((ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA), (0, 0)),
        "0.10.0": {
            ApiKey.PRODUCE: (0, 2),
            ApiKey.FETCH: (0, 2),
            ApiKey.LIST_OFFSETS: (0, 0),
            ApiKey.METADATA: (0, 1),
            ApiKey.API_VERSIONS: (0, 0),
        },
        "2.1": {
            ApiKey.PRODUCE: (0, 7),
            ApiKey.FETCH: (0, 10),
            ApiKey.LIST_OFFSETS: (0, 4),
            ApiKey.METADATA: (0, 7),
            ApiKey.API_VERSIONS: (0, 2),
            ApiKey.INIT_PRODUCER_ID: (0, 1),
        },
        "4.0": {
            ApiKey.PRODUCE: (3, 12),
            ApiKey.FETCH: (4, 17),
            ApiKey.LIST_OFFSETS: (1, 10),
            ApiKey.METADATA: (0, 13),
            ApiKey.API_VERSIONS: (0, 4),
            ApiKey.INIT_PRODUCER_ID: (0, 5),
        },
    }[release]
