"""The producer for asyncio, whose `send` returns a delivery for each record.

`send` puts a record into the accumulator and returns; the sender sends whole batches to the leaders. Records
with a key go to the partitions that Java's client chooses; all others go to one partition until its batch is
full, then to another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Never, Self, Unpack

from penstock.client.arguments import checked, instance_of, optional, seconds, topic_name, whole
from penstock.client.closing import closing_patience_s
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.instance_id import HasInstanceId
from penstock.client.cluster.metadata import no_such_partition
from penstock.client.cluster.topic_settings import RETENTION_SETTINGS, retention_warning, topic_settings
from penstock.client.config import DEFAULT_PARTITIONER, Partitioner, ProducerConfig
from penstock.client.produce.accumulator import Accumulator
from penstock.client.produce.delivery import Delivery
from penstock.client.produce.events import record_of
from penstock.client.produce.group_members import group_metadata_of
from penstock.client.produce.partitioner import PARTITIONERS, KeyLane, StickyChoice, TopicState, murmur2
from penstock.client.produce.sender import Sender
from penstock.client.produce.values import as_bytes, checked_headers, whole_ms
from penstock.clock import Clock, SystemClock
from penstock.common.extras import need_arrow
from penstock.common.hints import NOT_GIVEN, refuse_strays, with_hints, without_strays
from penstock.common.logs import logger_named
from penstock.errors import (
    ConfigError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
    TransactionStateError,
)
from penstock.headers import Header
from penstock.model import K, RecordMetadata, TopicPartition, V
from penstock.records.row_format import RECORD_OVERHEAD_BYTES

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from penstock.client.group.offsets import Committable, GroupMetadata
    from penstock.client.options import ProducerOptions
    from penstock.client.produce.columns import ColumnEncoder
    from penstock.client.produce.encoded import EncodedBatch, TableDelivery
    from penstock.client.produce.group_members import GroupMember
    from penstock.client.serializers import Serializers
    from penstock.client.statistics import Statistics
    from penstock.client.transactions.driver import TransactionDriver
    from penstock.client.transactions.steps import TransactionCoordinates
    from penstock.cloudevents import Event
    from penstock.cloudevents.formats.registry import FormatName
    from penstock.cloudevents.headers import Mode
    from penstock.cloudevents.write_record import KeyMapper


RETENTION_LOOK_MS = 3_600_000
"""The minimum age of records that makes the producer check the topic's retention settings."""

RETENTION_ANSWER_S = 2.0
"""The maximum time in seconds that `write_topic` waits at its end for the topic's retention settings."""

log = logger_named("penstock.client")


@with_hints("AsyncProducer", leave=("send", "try_send"))
class AsyncProducer(HasInstanceId, Generic[K, V]):
    """Writes records to topics.

    >>> async with AsyncProducer(bootstrap_servers="localhost:9092") as producer:
    ...     delivery = await producer.send("orders", b"two tickets", key=b"ada")
    ...     metadata = await delivery

    With ``transactional_id``, all records are sent in transactions (see `transaction`).

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        acks: the replicas that must acknowledge a record: ``all`` in sync (default), 1 the leader, 0 none.
        linger_ms: how long a batch that is not full may wait for more records; 0 by default.
        compression_type: ``none`` (the default), gzip, snappy, lz4 or zstd.
        delivery_timeout_ms: how long a record may take to be acknowledged in all; 120,000 by default.
        transactional_id: the identity for transactions, the same after a restart; without it, there are none.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ProducerOptions` describes all of them.

    Keys and values are bytes, or what `key_serializer` and `value_serializer` turn into bytes. A serializer
    is a function of one argument, such as ``str.encode``, and is never called with None.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ProducerOptions | Mapping[str, object] | None = None,
        *,
        key_serializer: Callable[[K], bytes | None] | None = None,
        value_serializer: Callable[[V], bytes | None] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self.config = ProducerConfig.of(
            config,
            options,
            bootstrap_servers=bootstrap_servers,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
        )
        self._client = AsyncClient(self.config)
        self.clock: Clock = SystemClock()
        """The clock for records without a timestamp, and for deadlines."""
        self._accumulator = Accumulator(self.config, self._client.dice)
        self._memory, self._known = self._accumulator.memory, self._client.cluster.topics
        """The size of buffered records and the metadata of topics, both of which `try_send` reads for every
        record."""
        chosen = self.config.partitioner
        self._partitioner: Partitioner = PARTITIONERS[chosen] if isinstance(chosen, str) else chosen
        self._null_is_free = isinstance(chosen, str) and self._partitioner(None, 1) is None
        """True if records without a key may go to any partition, so that the partitioner is not called."""
        self._is_javas = chosen == DEFAULT_PARTITIONER
        """True if the partitioner is Java's default one, which `try_send` computes without a call."""
        self.serializers = serializers_of(self.config)
        """The serializers of keys and values; None if these are bytes."""
        self._topics: dict[str, TopicState] = {}
        self.lanes: dict[str, Any] = {}
        """A dict from topic to the writer that accepts records without a key directly. The writer has the
        open batch of the current partition. Its `note` returns None for a record that `try_send` must handle
        itself."""
        self.key_lanes: dict[str, Any] = {}
        """A dict from topic to the `KeyLane` that accepts records with a key directly; its `note` takes the
        key first."""
        self._sender: Sender | None = None
        self._driver: TransactionDriver | None = None
        """The driver of transactions if there is a ``transactional.id``, once the producer has started."""
        self._client.begin_reports(self.stats)
        self._encoder: ColumnEncoder | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        name = self.config.transactional_id
        transactional = "" if name is None else f", transactional.id {name}"
        closed = ", closed" if self._is_closed else ""
        return f"<{type(self).__name__} of {self.config.described}{transactional}{closed}>"

    async def start(self) -> Self:
        """Connect to the cluster. This call is optional: the first `send` connects if necessary.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        if self._is_closed:
            raise NetworkError("this producer is closed")
        if self._sender is None:
            if self.config.transactional_id is not None:
                from penstock.client.transactions.driver import TransactionDriver  # most producers have no id

                self._driver = TransactionDriver(self._client, self.config, self._accumulator)
                self._accumulator.transaction = self._driver.machine
            self._sender = Sender(self._client, self.config, self._accumulator, self._driver)
            self._sender.wake()
        await self._client.bootstrap()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: object, traceback: object) -> None:
        await self.close(closing_patience_s(exc_type))

    # -- rows

    @without_strays
    async def send(
        self,
        topic: str,
        value: V | None = None,
        *strays: Never,
        key: K | None = None,
        partition: int | None = None,
        timestamp: int | datetime | None = None,
        headers: Sequence[Header] = (),
        event: Event | None = None,
        mode: Mode = "binary",
        key_mapper: KeyMapper | None = None,
        event_format: FormatName = "json",
        **others: Never,
    ) -> Delivery:
        """Accept one record and return its delivery; await it for the record's partition and offset.

        This call waits only while ``buffer.memory`` is full or the topic's metadata are missing. `timestamp`
        is in milliseconds since 1970, or a datetime (without a zone: local time), by default now.

        `event` is a CloudEvent to send instead of `value`, in `mode` ``"binary"`` or ``"structured"`` (in
        `event_format`), with the event's headers before `headers`. `key` is the record's key, unless
        `key_mapper` returns another one for the event (see `partitionkey_mapper`).

        Raises:
            ConfigError: both a value and an event are given.
            InvalidEventError: no record of that mode can carry the event.
            SerializationError: a serializer has raised, or has not returned bytes.
            EncodeError: a key or value is not bytes, or a header is not (str, bytes or None).
            KafkaError: the topic does not exist, or the record is too large.
            NetworkError: no broker answers.
            RequestTimeoutError: the buffer is full, or metadata are missing, for ``max.block.ms``.
        """
        if topic is NOT_GIVEN or strays or others:
            refuse_strays(AsyncProducer.send, "AsyncProducer.send", (self, topic, value, *strays), others)
        if self.serializers is not None:
            key, value = self.serializers.apply(topic, key, value)
        if event is not None:
            key, value, headers = record_of(event, value, key, headers, mode, key_mapper, event_format)
        if partition is None and timestamp is None and not headers and type(topic) is str:
            noted: Delivery | None = None
            if key is None:
                lane = self.lanes.get(topic)
                if lane is not None:
                    noted = lane.note(value, self.clock.now_ms())
            else:
                lane = self.key_lanes.get(topic)
                if lane is not None:
                    noted = lane.note(key, value, self.clock.now_ms())
            if noted is not None:
                return noted
        accepted = self.try_send(topic, value, key, partition, timestamp, headers)
        if accepted is None:
            return await self.send_when_possible(topic, value, key, partition, timestamp, headers)
        delivery, is_news = accepted
        if is_news:
            # Once a batch: let the sender have its turn, however tight the caller's loop is.
            await asyncio.sleep(0)
        return delivery

    async def send_and_wait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp: int | datetime | None = None,
        headers: Sequence[Header] = (),
        event: Event | None = None,
        mode: Mode = "binary",
        key_mapper: KeyMapper | None = None,
        event_format: FormatName = "json",
    ) -> RecordMetadata:
        """Send one record, wait until it is acknowledged, and return its partition and offset.

        Raises as `send`, and the error of the delivery if it fails.
        """
        delivery = await self.send(
            topic,
            value,
            key=key,
            partition=partition,
            timestamp=timestamp,
            headers=headers,
            event=event,
            mode=mode,
            key_mapper=key_mapper,
            event_format=event_format,
        )
        return await delivery

    def try_send(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | datetime | None,
        headers: Sequence[Header],
    ) -> tuple[Delivery, bool] | None:
        """Accept one record, and return its delivery and True if a batch was begun or filled; never wait.

        Returns None if the call would have to wait. Any thread may call this method.
        """
        try:
            state = self._topics.get(topic)
        except TypeError:  # a list, perhaps
            topic_name(topic)
            raise
        memory = self._memory
        if state is None or self._sender is None or self._is_closed or memory.used >= memory.limit:
            return None
        if state.info is not self._known.get(topic):
            return None
        if type(value) is not bytes:
            value = as_bytes("value", value)
        if type(key) is not bytes:
            key = as_bytes("key", key)
        size = RECORD_OVERHEAD_BYTES
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        if headers:
            headers, header_bytes = checked_headers(headers)
            size += header_bytes
        if timestamp is None:
            timestamp = self.clock.now_ms()
        elif type(timestamp) is not int or not -(1 << 63) <= timestamp < 1 << 63:
            timestamp = whole_ms(timestamp)
        is_free = is_keyed = False
        if partition is None:
            if key is not None and self._is_javas:
                is_keyed = True
                partition = (murmur2(key) & 0x7FFFFFFF) % state.count
            elif key is not None or not self._null_is_free:
                partition = self._partitioner(key, state.count)
            if partition is None:
                lane = self.lanes.get(topic)
                if lane is not None and key is None:
                    noted: Delivery | None = lane.note(value, timestamp, headers, size)
                    if noted is not None:
                        return noted, False
                partition, is_free = self._free_partition(state, size), True
        elif type(partition) is not int:
            partition = whole(partition, "the partition")
        if not 0 <= partition < state.count:
            if partition > 0:
                return None  # the topic may have grown: `send_when_possible` asks
            raise no_such_partition(TopicPartition(topic, partition), state.count)
        writer = state.writers[partition]
        if writer is not None and not is_free:
            put: Delivery | None = writer.put(key, value, headers, timestamp, size)
            if put is not None:
                return put, False
        accepted = self._accumulator.append(
            state.tp[partition], (key, value, headers, timestamp), size, self.clock.monotonic
        )
        if accepted[1]:
            self._sender.wake()
        state.writers[partition] = writer = self._accumulator.writer(state.tp[partition])
        if is_free and writer is not None and state.sticky.left > 0 and self._null_is_free:
            self._accumulator.open_lane(writer, self._known, state.info, state.sticky.left)
            self.lanes[topic] = writer
        elif is_keyed and state.key_lane is None:
            name = state.info.name
            lane = KeyLane(state.writers, self._known, name, state.info, memory)
            state.key_lane = self.key_lanes[name] = lane
        return accepted

    def _free_partition(self, state: TopicState, size: int) -> int:
        """Return the partition that `StickyChoice` chooses for a record without a key.

        A writer that has accepted such records directly (`lanes`) stops doing so, and the bytes of these
        records are counted.
        """
        lane = self.lanes.pop(state.info.name, None)
        if lane is not None:
            state.sticky.count(self._accumulator.close_lane(lane))
        return state.sticky.choose(state.available, size)

    async def send_when_possible(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | datetime | None,
        headers: Sequence[Header],
    ) -> Delivery:
        """Accept a record that `try_send` could not take at once, and return its delivery.

        As needed, it connects, gets the topic's metadata, and waits for memory.
        """
        deadline = self.clock.monotonic() + self.config.max_block_ms / 1000
        topic = topic_name(topic)
        partition = None if partition is None else whole(partition, "the partition")
        # What is wrong with the record need not wait for a broker.
        value, key, headers = as_bytes("value", value), as_bytes("key", key), checked_headers(headers)[0]
        timestamp = None if timestamp is None else whole_ms(timestamp)
        while True:
            await self.get_ready(topic, deadline)
            if partition is not None and partition >= self._topics[topic].count:
                await self._client.topics_with([TopicPartition(topic, partition)])
                continue
            accepted = self.try_send(topic, value, key, partition, timestamp, headers)
            if accepted is not None:
                return accepted[0]

    async def get_ready(self, topic: str, deadline: float, partition: int = 0) -> None:
        """Connect, get the topic's metadata, and wait for memory, as needed. Raises as `send`.

        If the metadata lack `partition`, they are fetched again, since the topic may have grown.
        """
        if self._sender is None or self._is_closed or not self._client.is_reached:
            await self.start()
        assert self._sender is not None
        state = await self._know(topic, deadline)
        if partition >= state.count:
            await self._client.topics_with([TopicPartition(topic, partition)])
            await self._know(topic, deadline)
        left_s = deadline - self.clock.monotonic()
        if self._accumulator.is_full and not await self._sender.room(left_s):
            raise RequestTimeoutError(
                f"no room for more records within max.block.ms = {self.config.max_block_ms:g}: "
                f"buffer.memory = {self.config.buffer_memory} bytes are waiting to be acknowledged"
            )

    async def _know(self, topic: str, deadline: float) -> TopicState:
        """Return the `TopicState` of a topic; fetch its metadata first if the client has none."""
        topic_name(topic)
        info = self._client.cluster.topics.get(topic)
        if info is None or info.error_code or not info.partitions:
            left_ms = max(1.0, (deadline - self.clock.monotonic()) * 1000)
            info = await self._client.retrying(
                f"getting to know topic {topic!r}", lambda: self._client.topic(topic), left_ms
            )
        state = self._topics.get(topic)
        if state is None:
            sticky = StickyChoice(self._accumulator.batch_bytes_max, self._client.dice)
            state = self._topics[topic] = TopicState(info, sticky)
        elif state.info is not info:
            state = self._topics[topic] = TopicState(info, state.sticky)
        return state

    # -- columns

    async def send_arrow(
        self,
        topic: str,
        data: pa.Table | pa.RecordBatch,
        *,
        fields: Mapping[str, str] | None = None,
        delivery: TableDelivery | None = None,
    ) -> TableDelivery:
        """Accept a table and return its delivery; await the delivery for the offsets of the rows.

        The columns are ``key``, ``value``, ``headers``, ``partition`` and ``timestamp``, each optional;
        `fields` maps these names to others. Keys and values are binary or string. Other columns are refused,
        since they would be lost (see `penstock.write_topic`). Pass one `delivery` to several calls to await
        all their tables together.

        A row with a partition goes to that partition, a row with a key to the partition that Java's client
        chooses; all other rows are spread over all partitions, one batch at a time.

        Raises: as `send`.
        """
        need_arrow("send_arrow")
        from penstock.client.produce.columns import TableDelivery, record_batches

        given = optional(instance_of(TableDelivery))(delivery, "delivery")
        delivery = TableDelivery(topic) if given is None else given
        chunks = record_batches(data, fields or {})
        topic = topic_name(topic)
        await self.get_ready(topic, self.clock.monotonic() + self.config.max_block_ms / 1000)
        for chunk in chunks:
            batches = await asyncio.to_thread(self.encode_columns, topic, chunk)
            while batches := batches[self.append_encoded(topic, batches, delivery) :]:
                deadline = self.clock.monotonic() + self.config.max_block_ms / 1000
                await self.get_ready(topic, deadline, batches[0].partition)
        return delivery

    def encode_columns(self, topic: str, chunk: pa.RecordBatch) -> list[EncodedBatch]:
        """Return an Arrow record batch as encoded batches. The topic's metadata must be known.

        Any thread may call this, one at a time.
        """
        if self._encoder is None:
            from penstock.client.produce.columns import ColumnEncoder

            self._encoder = ColumnEncoder(self.config, self._client.dice)
        state = self._topics[topic]
        return self._encoder.encode(chunk, state.count, state.available, self.clock.now_ms())

    def append_encoded(self, topic: str, batches: Sequence[EncodedBatch], delivery: TableDelivery) -> int:
        """Accept encoded batches, and return how many were accepted.

        The method stops before a batch that has to wait. Then call `get_ready`, and this method with the
        remaining batches. Any thread may call this method. The sender is woken once, so that a request has
        batches of all partitions.
        """
        state = self._topics.get(topic)
        if self._sender is None or state is None:
            return 0
        now, accepted = self.clock.monotonic(), 0
        for batch in batches:
            if batch.partition >= state.count or self._accumulator.is_full:
                break
            tp = state.tp[batch.partition]
            outcome = self._accumulator.append_encoded(tp, batch.data, batch.record_count, now)
            delivery.add(outcome, batch, state.info.topic_id)
            accepted += 1
        self._sender.wake()
        return accepted

    # -- transactions

    def transaction(self) -> TransactionBlock:
        """Return a ``with`` block that is a transaction: committed at its end, aborted after an exception.

        >>> async with producer.transaction():
        ...     await producer.send("orders", b"two tickets")

        Entering the block raises the errors of `begin_transaction`, leaving it those of `commit_transaction`.
        If the commit is refused with `TransactionAbortableError`, the block aborts the transaction, so that
        the producer stays usable.
        """
        self.check_transactional_id()
        return TransactionBlock(self)

    async def init_transactions(self) -> None:
        """Get the producer id of ``transactional.id``. This fences all earlier producers of that id.

        The coordinator aborts a transaction that such a producer has left open. The first `begin_transaction`
        makes this call if the application has not.

        Raises:
            TransactionRetriableError: not done within ``max.block.ms``; call it again.
            TransactionalIdAuthorizationError: the client may not use the id. The call may be repeated.
            TransactionFatalError: the producer cannot be used, for instance because its
                ``transaction.timeout.ms`` is above the broker's ``transaction.max.timeout.ms``.
            UnsupportedVersionError: the broker is older than Kafka 0.11.
            ConfigError: no ``transactional.id``.
            NetworkError: no bootstrap server answers.
        """
        await (await self._transactions()).initialize()

    async def begin_transaction(self) -> None:
        """Begin a transaction. All records sent from now on belong to it, until it is committed or aborted.

        Raises:
            TransactionStateError: a transaction is open already.
            TransactionAbortableError: the last transaction has failed, and must be aborted first.
            TransactionFatalError: the producer has failed permanently.
            PenstockError: the first call may raise the errors of `init_transactions`.
        """
        await (await self._transactions()).begin()

    async def send_offsets(self, offsets: Committable, group: GroupMetadata | GroupMember | str) -> None:
        """Add a group's offsets to the transaction: they are committed with the transaction or not at all.

        `offsets` has the next offset to read of each partition, as `AsyncConsumer.positions` returns them.
        `group` is the consumer, or its `group_metadata`: the coordinator then refuses the offsets of a member
        that the group has removed (KIP-447). If `group` is a name, membership is not checked.

        Raises:
            TransactionAbortableError: the group has removed the member, or refuses the offsets.
            TransactionRetriableError: not done within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed permanently, for instance because it is fenced.
            TransactionStateError: no transaction is open.
            ConfigError: an offset is negative, or the group has no name.
        """
        from penstock.client.group.offsets import GroupMetadata, checked_offsets

        metadata = group if isinstance(group, GroupMetadata) else None
        if metadata is None:
            metadata = GroupMetadata(group) if isinstance(group, str) else group_metadata_of(group)
        metadata.check()
        checked = checked_offsets(offsets, "send_offsets()")
        driver = await self._transactions()
        if checked:
            await driver.send_offsets(checked, metadata)

    async def prepare_transaction(self) -> TransactionCoordinates:
        """Wait until all records are acknowledged, and return the ids to finish the transaction later.

        The result has transactional id, producer id and epoch. The producer accepts no more records. The
        transaction stays open, even after this producer is closed, until `commit_transaction` or
        `abort_transaction` of this producer, `AsyncAdmin.end_transaction` of any client, or the end of
        ``transaction.timeout.ms``.

        Raises:
            TransactionAbortableError: a record was not accepted. Abort the transaction.
            TransactionRetriableError: not done within ``max.block.ms``; call it again, or abort.
            TransactionFatalError: the producer has failed permanently.
            TransactionStateError: no transaction is open.
        """
        return await (await self._transactions()).prepare()

    async def commit_transaction(self) -> None:
        """Send all records, wait until they are acknowledged, and commit the transaction.

        Raises:
            TransactionAbortableError: nothing is committed, because a record was not accepted, or because the
                transaction's timeout has passed (with KIP-890). Abort the transaction, then do its work
                again.
            TransactionRetriableError: not done within ``max.block.ms``, and the outcome is not known yet:
                call it again. The producer accepts no other call before.
            TransactionFatalError: the producer has failed permanently. `ProducerFencedError`: another
                producer uses the id, or the transaction's timeout has passed. The client does not know
                whether the transaction was committed before that; a new producer continues from the committed
                state.
            TransactionStateError: no transaction is open.
        """
        await (await self._transactions()).commit()

    async def abort_transaction(self) -> None:
        """Drop records that were not sent, wait for those in flight, and abort the transaction.

        Raises:
            TransactionRetriableError: not done within ``max.block.ms``; call it again.
            TransactionFatalError: the producer has failed permanently; the coordinator aborts after the
                timeout.
            TransactionStateError: no transaction is open, or a commit is under way.
        """
        await (await self._transactions()).abort()

    @property
    def transaction_coordinates(self) -> TransactionCoordinates:
        """The coordinates of the open transaction: its transactional id, producer id and epoch.

        Raises:
            TransactionStateError: the producer has no producer id yet.
        """
        self.check_transactional_id()
        coordinates = None if self._driver is None else self._driver.coordinates
        if coordinates is None:
            raise TransactionStateError("no producer id yet: call init_transactions() or begin_transaction()")
        return coordinates

    async def leave_transaction(self, exc: BaseException | None) -> None:
        """End the block of `transaction`: commit if `exc` is None, else abort. The caller raises `exc`."""
        await (await self._transactions()).leave(exc)

    def check_transactional_id(self) -> None:
        """Raise ConfigError if the producer has no ``transactional.id``."""
        if self.config.transactional_id is None:
            raise ConfigError(
                'transactions need the option "transactional.id": a name that this producer has again '
                "after a restart, and that no other producer has meanwhile"
            )

    async def _transactions(self) -> TransactionDriver:
        self.check_transactional_id()
        await self.start()
        assert self._driver is not None
        return self._driver

    # -- the end

    @checked(topic=topic_name, oldest_ms=optional(whole))
    async def warn_of_retention(self, topic: str, oldest_ms: int | None) -> None:
        """Log a warning if the topic's retention will remove the records that were just written.

        `oldest_ms` is the timestamp of the oldest of them, in milliseconds since 1970, or None if no record
        has its own timestamp. A broker without DescribeConfigs (before 0.11) causes no warning.
        """
        if oldest_ms is None or self.clock.now_ms() - oldest_ms <= RETENTION_LOOK_MS:
            return
        try:
            settings = await topic_settings(self._client, topic, RETENTION_SETTINGS, RETENTION_ANSWER_S)
        except PenstockError as error:
            log.debug("the retention of topic %s is not known: %s", topic, error)
            return
        warning = retention_warning(topic, settings, oldest_ms, self.clock.now_ms())
        if warning is not None:
            log.warning("%s", warning)

    def stats(self) -> Statistics:
        """Return a snapshot of this producer's counters and buffers. Any thread may call this method.

        To get snapshots at intervals, set ``statistics.interval.ms`` and ``stats_cb``.
        """
        from penstock.client.produce.producer_statistics import producer_statistics

        return producer_statistics(self._client, self._accumulator, self.config.buffer_memory)

    @checked(timeout=seconds)
    async def flush(self, timeout: float | None = None) -> None:
        """Send all batches now, and wait until every record is acknowledged or has failed.

        Failures are raised by the deliveries, not by this call. Failures of deliveries that the application
        does not read are logged.

        Raises:
            RequestTimeoutError: not done within `timeout` seconds.
        """
        if self._sender is None:
            return
        self._accumulator.flush()
        self._sender.wake()
        try:
            async with asyncio.timeout(timeout):
                for outcome in self._accumulator.unsettled():
                    await outcome.wait()
                # Without acknowledgements, records count as written when they have been sent.
                await self._client.drained()
                self._sender.report_unnoticed()
        except TimeoutError:
            raise RequestTimeoutError(
                f"{len(self._accumulator.unsettled())} batches are not acknowledged after {timeout:g} s"
            ) from None

    @checked(timeout=seconds)
    async def close(self, timeout: float | None = None) -> None:
        """Flush, then close. Records that are not acknowledged within `timeout` seconds fail.

        An open transaction is aborted, unless it is prepared.
        """
        if self._is_closed:
            return
        self._is_closed = True
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        if self._driver is not None:
            await self._driver.close(timeout)
        try:
            await self.flush(timeout)
        except RequestTimeoutError:
            pass
        finally:
            if self._sender is not None:
                await self._sender.close()
            self._accumulator.close(
                NetworkError("the producer was closed before the record was acknowledged")
            )
            if self._sender is not None:
                self._sender.report_unnoticed()
            await self._client.close(None if deadline is None else max(0.0, deadline - loop.time()))


class TransactionBlock:
    """The context manager that `AsyncProducer.transaction` returns: an ``async with`` block.

    The block is one transaction.
    """

    def __init__(self, producer: AsyncProducer[Any, Any]) -> None:
        self._producer = producer

    async def __aenter__(self) -> None:
        await self._producer.begin_transaction()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: object
    ) -> None:
        await self._producer.leave_transaction(exc)


def serializers_of(config: ProducerConfig) -> Serializers | None:
    """Return the serializers of a producer, or None if keys and values are bytes."""
    if config.key_serializer is None and config.value_serializer is None:
        return None
    from penstock.client.serializers import Serializers

    return Serializers(config.key_serializer, config.value_serializer)
