"""The I/O of the producer: sends the accumulator's batches to the leaders, and gives it their responses.

A sender belongs to one event loop; any thread may call `wake`. The accumulator decides what to send, and what
to do after an error.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.background_loop import KeyedTasks
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.connection_pool import Peer
from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.cluster.retry import RetryVerdict, judge, left_out
from penstock.client.config import ProducerConfig
from penstock.client.produce.accumulator import Accumulator
from penstock.client.produce.batch_payload import payload_for, row_size, rows_of
from penstock.client.produce.batches import ProducerBatch
from penstock.client.producer_id import NO_PRODUCER_ID, ProducerId
from penstock.common.logs import logger_named
from penstock.errors import (
    AuthenticationError,
    DecodeError,
    KafkaError,
    PenstockError,
    ProtocolViolationError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from penstock.protocol.since import (
    INIT_PRODUCER_ID_RAISES_EPOCH_SINCE,
    PRODUCE_IMPLICIT_ADDS_SINCE,
    PRODUCE_TOPIC_IDS_SINCE,
)
from penstock.records.compression.codecs import CompressionCodec

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.client.transactions.driver import TransactionDriver

LAST_WITH_COUNTED_ACKS = 0
"""The last version of Produce that accepts a number above 1 as acks (before Kafka 0.9)."""

AGAIN_AFTER_S = 1.0
"""The pause in seconds before the sender runs again after an unexpected exception."""

TIMEOUT_SLACK_S = 1.0
"""The time in seconds that the client waits for the response beyond the timeout in the request."""

COMPLAIN_AFTER_S = 5.0
COMPLAIN_EVERY_S = 60.0
"""The seconds between log lines about records that are not acknowledged in spite of retries."""

WITHOUT_IDEMPOTENCE = (
    "going on without idempotence: records that are sent again may be stored twice. enable.idempotence=true "
    "refuses such a broker, and false goes on without this warning"
)

_log = logger_named("penstock.client")


class Sender:
    """Sends the batches that are due after each event: new records, responses, timers, metadata.

    With a `driver`, batches are parts of its transactions: the sender calls the driver's `pump` after each
    run.
    """

    def __init__(
        self,
        client: AsyncClient,
        config: ProducerConfig,
        accumulator: Accumulator,
        driver: TransactionDriver | None = None,
    ) -> None:
        self._driver = driver
        if driver is not None:
            driver.on_change(self.wake)
        self._client = client
        self._config = config
        self._accumulator = accumulator
        self._codec = CompressionCodec.from_name(config.compression_type)
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._is_woken = False
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._next_expiry = 0.0
        self._in_flight: dict[int, int] = defaultdict(int)
        self._muted_until: dict[int, float] = {}
        self._tasks = KeyedTasks(self._loop, self.wake)
        """Background tasks by key: a node id (connects), "metadata" (refreshes), "producer id" (gets one)."""
        self._stale: set[str] = set()
        """Topics whose metadata are out of date, as a response or a missing leader has shown."""
        self._room: list[asyncio.Future[None]] = []
        self._hindered_since = 0.0
        """The time of the first failure since the last response, on the loop's clock; 0 without a failure."""
        self._complain_at = 0.0

    def wake(self) -> None:
        """Schedule a run of the sender on its event loop, which sends due batches. Thread-safe."""
        if self._is_woken or self._is_closed:
            return
        self._is_woken = True
        if threading.get_ident() == self._thread_id:
            self._loop.call_soon(self._pump)
        else:
            self._loop.call_soon_threadsafe(self._pump)

    async def room(self, timeout_s: float) -> bool:
        """Wait until a quarter of ``buffer.memory`` is free; return False if it is full after the timeout."""
        deadline = self._loop.time() + timeout_s
        while not self._accumulator.has_ample_room:
            self._accumulator.is_awaited = True
            future: asyncio.Future[None] = self._loop.create_future()
            self._room.append(future)
            self.wake()
            try:
                async with asyncio.timeout_at(deadline):
                    await future
            except TimeoutError:
                return not self._accumulator.is_full
        return True

    async def close(self) -> None:
        """Stop sending, without waiting for the responses to requests in flight."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()
        self._wake_room()

    # -- the turn

    def _pump(self) -> None:
        self._is_woken = False
        if self._is_closed:
            return
        now = self._loop.time()
        try:
            wake_at = self._take_turn(now)
        except Exception:
            # Without another turn nothing would ever time out.
            _log.exception("a turn of the producer has failed; the next one is due in %g s", AGAIN_AFTER_S)
            wake_at = now + AGAIN_AFTER_S
        self._arm(wake_at)
        if self._driver is not None:
            self._driver.pump()

    def _take_turn(self, now: float) -> float:
        """Send due batches and fail expired ones; return the time to run again, on the loop's clock."""
        if now >= self._next_expiry:
            latest = now + self._config.delivery_timeout_ms / 1000
            self._next_expiry = min(self._accumulator.expire(now), latest)
            self._wake_room()
        if self._accumulator.wants_epoch:
            self._tasks.start("producer id", self._fetch_owner())
        wake_at = self._send_due(now)
        if self._client.metadata_is_old and self._client.is_reached:
            self._tasks.start("metadata", self._fetch_metadata())
        return min(wake_at, self._next_expiry)

    def _send_due(self, now: float) -> float:
        while True:
            drained = self._accumulator.drain(now, self._client.cluster.leader, self._can_take)
            if drained.unroutable:
                self._note_unroutable(drained.unroutable)
                self._stale.update(tp.topic for tp in drained.unroutable)
                self._tasks.start("metadata", self._fetch_metadata())
            if not drained.requests:
                return drained.wake_at
            for node_id, batches in drained.requests.items():
                self._send(node_id, batches)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when < float("inf"):
            self._timer = self._loop.call_at(when, self._pump)

    def _can_take(self, node_id: int) -> bool:
        peer = self._client.live_peer(node_id)
        if peer is None:
            self._tasks.start(node_id, self._connect(node_id))
            return False
        if self._in_flight[node_id] >= self._config.max_in_flight_requests_per_connection:
            return False
        if self._muted_until.get(node_id, 0.0) > self._loop.time():
            return False
        if peer.connection.is_clogged:
            peer.connection.when_writable(self.wake)
            return False
        return True

    # -- requests

    def _send(self, node_id: int, batches: Sequence[ProducerBatch]) -> None:
        peer = self._client.live_peer(node_id)
        assert peer is not None  # `_can_take` has just seen it
        try:
            version = self._version(peer, batches)
        except UnsupportedVersionError as error:
            self._fail(batches, error)
            return
        sendable = [batch for batch in batches if self._make_payload(batch, version)]
        if not sendable:
            self.wake()
            return
        request = self._request(sendable, version)
        try:
            if self._config.acks == 0:
                peer.connection.send_only(request, version)
                for batch in sendable:
                    self._accumulator.succeed(batch, -1)
                self._wake_room()
                return
            timeout_s = self._client.request_timeout_s + TIMEOUT_SLACK_S
            future = peer.connection.request(request, version, timeout_s)
        except PenstockError as error:
            self._fail(sendable, error)
            return
        self._in_flight[node_id] += 1
        future.add_done_callback(lambda done: self._answered(node_id, sendable, done))

    def _version(self, peer: Peer, batches: Iterable[ProducerBatch]) -> int:
        if self._config.acks > 1 and peer.versions.highest(ApiKey.PRODUCE) > LAST_WITH_COUNTED_ACKS:
            raise UnsupportedVersionError(
                f"broker {peer.versions.address} takes acks of all, 1 or 0, not {self._config.acks}: brokers "
                "wait for a number of replicas up to Kafka 0.8 only"
            )
        if self._driver is not None and not self._driver.machine.is_implicit:
            return peer.versions.choose(ProduceRequest, PRODUCE_IMPLICIT_ADDS_SINCE - 1)
        has_ids = all(self._client.cluster.topic_id(b.outcome.topic) != NO_TOPIC_ID for b in batches)
        version = peer.versions.choose(ProduceRequest, None if has_ids else PRODUCE_TOPIC_IDS_SINCE - 1)
        if self._driver is not None and version < PRODUCE_IMPLICIT_ADDS_SINCE:
            raise UnsupportedVersionError(
                f"broker {peer.connection.address} speaks Produce {version}, transaction.version = 2 needs "
                f"{PRODUCE_IMPLICIT_ADDS_SINCE}: upgrade it, or lower the feature"
            )
        return version

    def _make_payload(self, batch: ProducerBatch, version: int) -> bool:
        try:
            self._payload(batch, version)
        except PenstockError as error:
            self._fail([batch], error)
            return False
        return True

    def _payload(self, batch: ProducerBatch, version: int) -> Buffer:
        return payload_for(batch, version, self._codec, is_transactional=self._driver is not None)

    def _request(self, batches: Iterable[ProducerBatch], version: int) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name = batch.outcome.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(
                    name=name, topic_id=self._client.cluster.topic_id(name)
                )
            topic.partition_data.append(
                PartitionProduceData(index=batch.outcome.partition, records=self._payload(batch, version))
            )
        return ProduceRequest(
            acks=self._config.acks,
            timeout_ms=int(self._config.request_timeout_ms),
            topic_data=list(topics.values()),
            transactional_id=self._config.transactional_id,
        )

    # -- answers

    def _answered(self, node_id: int, batches: Sequence[ProducerBatch], done: asyncio.Future[Any]) -> None:
        self._in_flight[node_id] -= 1
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._fail(batches, error if isinstance(error, PenstockError) else DecodeError(str(error)))
            return
        try:
            self._take_answer(node_id, batches, done.result())
        except Exception as failure:
            _log.exception("an answer to Produce could not be dealt with")
            unsettled = [batch for batch in batches if not batch.outcome.is_settled]
            self._fail(unsettled, DecodeError(f"an answer to Produce could not be dealt with: {failure!r}"))

    def _take_answer(self, node_id: int, batches: Sequence[ProducerBatch], answer: ProduceResponse) -> None:
        self._hindered_since = 0.0
        broker = self._client.address_of(node_id)
        throttle_s = self._client.throttle_s(broker, answer.throttle_time_ms)
        if throttle_s:
            self._muted_until[node_id] = self._loop.time() + throttle_s
            self._loop.call_later(throttle_s, self.wake)
        answers: dict[tuple[str, int], PartitionProduceResponse] = {}
        for topic in answer.responses:
            name = topic.name or self._client.cluster.name_of(topic.topic_id) or ""
            for partition in topic.partition_responses:
                answers[name, partition.index] = partition
        for batch in batches:
            self._judge(batch, answers.get((batch.outcome.topic, batch.outcome.partition)), broker)
        self._wake_room()
        self.wake()

    def _judge(self, batch: ProducerBatch, answer: PartitionProduceResponse | None, broker: object) -> None:
        if answer is None:
            tp = f"partition {batch.outcome.topic}-{batch.outcome.partition}"
            self._fail([batch], left_out(broker, tp, "Produce"))
        elif answer.error_code:
            self._fail([batch], _produce_error(batch, answer))
        else:
            self._accumulator.succeed(batch, answer.base_offset, answer.log_append_time_ms)

    def _fail(self, batches: Iterable[ProducerBatch], error: PenstockError) -> None:
        now = self._loop.time()
        batches = list(batches)
        for batch in batches:
            too_large = self._accumulator.fail(batch, error, now)
            if too_large is not None:
                self._accumulator.split(too_large, rows_of(too_large), row_size)
        verdict = judge(error)
        if verdict is not RetryVerdict.FATAL:
            self._client.troubles.note("producing", error)
        if verdict is RetryVerdict.REFRESH:
            self._stale.update(batch.outcome.topic for batch in batches)
            self._tasks.start("metadata", self._fetch_metadata())
        self._wake_room()
        self.wake()

    def report_unnoticed(self) -> None:
        """Log the failures whose deliveries the application has not read."""
        for outcome, count in self._accumulator.take_failures():
            if not outcome.is_watched:
                _log.warning(
                    "%d records for %s-%d were not written: %s",
                    count,
                    outcome.topic,
                    outcome.partition,
                    outcome.error,
                )

    def _wake_room(self) -> None:
        if self._room and (self._is_closed or self._accumulator.has_ample_room):
            self._accumulator.is_awaited = False
            waiting, self._room = self._room, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    # -- tasks in the background

    async def _connect(self, node_id: int) -> None:
        """Connect to a broker. The client itself delays repeated attempts after failures."""
        try:
            await self._client.peer(node_id)
        except AuthenticationError as error:
            await self._refused(error)
        except PenstockError as error:
            self._note(error, node_id)
            await self._fetch_metadata()

    async def _fetch_metadata(self) -> None:
        stale, self._stale = self._stale, set()
        try:
            await self._client.refresh(stale)
        except AuthenticationError as error:
            await self._refused(error)
        except PenstockError as error:
            self._stale |= stale
            self._note(error)
        self.wake()
        # Not more often than this, however many batches ask for it.
        await asyncio.sleep(self._config.retry_backoff_ms / 1000)

    async def _refused(self, error: AuthenticationError) -> None:
        """Fail all waiting records after a refused login or certificate: retries would be refused, too."""
        self._accumulator.abandon(error)
        self._wake_room()
        await asyncio.sleep(self._config.retry_backoff_ms / 1000)

    async def _fetch_owner(self) -> None:
        """Get a producer id, or the next epoch of the current producer id."""
        try:
            answer = await self._init_producer_id(self._accumulator.owner)
        except (UnsupportedVersionError, KafkaError) as error:
            if judge(error) is not RetryVerdict.FATAL:
                self._note(error)
                await asyncio.sleep(self._config.retry_backoff_ms / 1000)
            elif self._accumulator.owner == NO_PRODUCER_ID and self._config.enable_idempotence is None:
                _log.warning("%s: %s; %s", self._config.client_id, error, WITHOUT_IDEMPOTENCE)
                self._accumulator.go_without_owner()
            else:
                self._accumulator.abandon(error)
                await asyncio.sleep(self._config.retry_backoff_ms / 1000)
        except AuthenticationError as error:
            await self._refused(error)
        except PenstockError as error:
            self._note(error)
            await asyncio.sleep(self._config.retry_backoff_ms / 1000)
        else:
            self._accumulator.set_owner(ProducerId(answer.producer_id, answer.producer_epoch))

    async def _init_producer_id(self, owner: ProducerId) -> InitProducerIdResponse:
        peer = await self._client.peer()
        version = peer.versions.choose(InitProducerIdRequest)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        if version >= INIT_PRODUCER_ID_RAISES_EPOCH_SINCE:
            request.producer_id, request.producer_epoch = owner
        answer: InitProducerIdResponse = await peer.connection.request(
            request, version, self._client.request_timeout_s
        )
        if answer.error_code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED):
            # The broker has dropped the old one: a fresh id does as well.
            request.producer_id, request.producer_epoch = NO_PRODUCER_ID
            answer = await peer.connection.request(request, version, self._client.request_timeout_s)
        if answer.error_code:
            raise error_for(answer.error_code, f"getting a producer id from {peer.connection.address}")
        if answer.producer_id < 0 or answer.producer_epoch < 0:
            raise ProtocolViolationError(
                f"broker {peer.connection.address} gave out producer id {answer.producer_id} "
                f"with epoch {answer.producer_epoch}"
            )
        return answer

    def _note(self, error: PenstockError, node_id: int | None = None) -> None:
        """Record `error` as the last error of all waiting batches, or of those whose leader is `node_id`."""
        leader = self._client.cluster.leader
        self._accumulator.hinder(error, lambda tp: node_id is None or leader(tp) == node_id)
        self._complain(error)

    def _complain(self, error: PenstockError) -> None:
        """Log a warning if failures have delayed records for some seconds, at most once a minute."""
        now = self._loop.time()
        self._hindered_since = self._hindered_since or now
        since_s = now - self._hindered_since
        if since_s < COMPLAIN_AFTER_S or now < self._complain_at:
            return
        count = sum(records for records, _ in self._accumulator.waiting().values())
        if count:
            self._complain_at = now + COMPLAIN_EVERY_S
            name = self._config.client_id
            _log.warning("%s: %d records wait for %.0f s, trying on: %s", name, count, since_s, error)

    def _note_unroutable(self, partitions: Sequence[TopicPartition]) -> None:
        for tp in partitions:
            topic = self._client.cluster.topics.get(tp.topic)
            code = (topic.error_code if topic else 0) or ErrorCode.LEADER_NOT_AVAILABLE
            hindered = {tp}
            error = error_for(code, f"partition {tp}")
            self._accumulator.hinder(error, hindered.__contains__)
            self._complain(error)


def _produce_error(batch: ProducerBatch, answer: PartitionProduceResponse) -> KafkaError:
    tp = f"{batch.outcome.topic}-{batch.outcome.partition}"
    details = [answer.error_message] if answer.error_message else []
    details += [
        f"record {e.batch_index} of the batch: {e.batch_index_error_message}"
        for e in answer.record_errors[:3]
        if e.batch_index_error_message
    ]
    return error_for(answer.error_code, f"writing to {tp}" + "".join(f" ({detail})" for detail in details))
