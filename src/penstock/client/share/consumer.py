"""The share consumer for asyncio: records that a share group gives out one by one, and acknowledgements.

Acquired records are kept in `Holdings`; this module joins the group, takes acknowledgements, and waits for
records.
"""

from __future__ import annotations

import asyncio
import inspect
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack

from penstock.client import arguments
from penstock.client.arguments import checked, column_names, flag, function, optional, poll_ms, size, whole
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.instance_id import HasInstanceId
from penstock.client.config import ShareConsumerConfig
from penstock.client.group.coordinator import CoordinatorFinder
from penstock.client.group.member import MembershipDriver
from penstock.client.group.requests import MemberSettings
from penstock.client.group.state_machine import Driven, Phase
from penstock.client.serializers import Deserializers
from penstock.client.share.acknowledgements import AcknowledgementCallback, AcknowledgeType, joined
from penstock.client.share.fetcher import ShareFetcher
from penstock.client.share.handing_out import HandingOut
from penstock.client.share.holdings import Holdings
from penstock.client.share.membership import ShareMembership
from penstock.client.share.readings import SHARE_COLUMN_NAMES
from penstock.client.share.session import FetchTerms
from penstock.common.extras import need_arrow
from penstock.common.hints import with_hints
from penstock.errors import ConfigError, NetworkError, PenstockError, RequestTimeoutError
from penstock.model import K, ShareRecord, TopicPartition, V

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.options import ShareConsumerOptions
    from penstock.client.share.workers import Handler, OnError, PoolSummary
    from penstock.client.statistics import Statistics

ARROW_BATCH_BYTES = 4 << 20
ITERATION_POLL_S = 1.0
FLUSH_EVERY_S = 0.1
"""The interval in seconds between requests with acknowledgements, if polls return without waiting."""

CLOSE_PATIENCE_S = 30.0
BREATH_S = 0.02
INNER = ("begin_poll", "iterate_next", "poll_arrow_now", "poll_now", "wait")
"""Methods that `with_hints` does not wrap, because they are called for each record or poll, and only by the
consumer classes themselves.
"""


@with_hints("AsyncShareConsumer", leave=INNER)
class AsyncShareConsumer(HasInstanceId, Generic[K, V]):
    """Reads records from topics as from a queue: a share group gives each record to one of its members.

    >>> async with AsyncShareConsumer("localhost:9092", group_id="thumbnails") as consumer:
    ...     consumer.subscribe("images")
    ...     await consumer.run(make_thumbnail, workers=8)

    >>> async with AsyncShareConsumer("localhost:9092", group_id="mail") as consumer:
    ...     consumer.subscribe("letters")
    ...     async for record in consumer:
    ...         await send(record)

    Options are keywords, or stand in `config` under Kafka's dotted names. Those that most programs set:

        group_id: the share group; it must have no consumers of other types.
        share_acknowledgement_mode: ``implicit`` (the default), or ``explicit`` to `acknowledge` each record.
        share_acquire_mode: ``batch_optimized`` (default), or ``record_limit``: never more than requested.
        max_poll_records, max_poll_interval_ms: 500; 300,000.
        security_protocol, sasl_mechanism, sasl_username, sasl_password, ssl_cafile: TLS and logins.

    `penstock.client.ShareConsumerOptions` describes all of them. The offset at which a group begins, how long
    a record is locked and how often it is delivered are settings of the group: `share.auto.offset.reset`,
    `share.record.lock.duration.ms`, `share.delivery.count.limit`.

    Share groups (KIP-932) need Kafka 4.2 or newer.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ShareConsumerOptions | Mapping[str, object] | None = None,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **options: Unpack[ShareConsumerOptions],
    ) -> None:
        self.config = ShareConsumerConfig.of(
            config,
            options,
            bootstrap_servers=bootstrap_servers,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )
        self.member_id = str(uuid.uuid4())
        """The id of this consumer in its group, which is also the key of its share sessions."""
        self._client = AsyncClient(self.config)
        self.holdings = Holdings(time.monotonic, self.config.default_api_timeout_ms / 1000)
        deserialize: Deserializers[K, V] | None = None
        if self.config.key_deserializer is not None or self.config.value_deserializer is not None:
            deserialize = Deserializers(self.config.key_deserializer, self.config.value_deserializer)
        self._handing_out: HandingOut[K, V] = HandingOut(self.config, self.holdings, deserialize)
        self._topics: tuple[str, ...] = ()
        self._callback: AcknowledgementCallback | None = None
        self._member: MembershipDriver[Driven] | None = None
        self._membership: ShareMembership | None = None
        self.fetcher: ShareFetcher | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flush_at = 0.0
        self._is_closed = False
        self._stops = 0
        self._seen_alive = 0
        self._commits: set[asyncio.Task[object]] = set()
        self._client.begin_reports(self.stats)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config.described}, share group {self.config.group_id}>"

    # -- beginning and end

    async def start(self) -> Self:
        """Connect to the cluster. This call is optional: the first `poll` connects if necessary.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        if self._is_closed:
            raise NetworkError("this share consumer is closed")
        self._loop = asyncio.get_running_loop()
        await self._client.bootstrap()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, exc_type: object, exc: object, traceback: object) -> None:
        await self.close(has_failed=exc_type is not None)

    @checked(has_failed=flag, timeout=arguments.seconds)
    async def close(self, *, has_failed: bool = False, timeout: float | None = None) -> None:
        """Send acknowledgements, release all other records, leave the group, and close the connections.

        In implicit mode, the records of the last poll are accepted, unless the application `has_failed`: then
        they are delivered again. In explicit mode, records without an acknowledgement are delivered again.
        The call waits for `timeout` seconds at most, by default 30.
        """
        await self._leave(has_failed=has_failed, timeout=timeout)
        await self.notify()
        self._is_closed = True
        await self._client.close()

    async def close_now(self, *, has_failed: bool, timeout: float | None) -> None:
        """Send acknowledgements and leave the group as `close` does, but keep the connections.

        No callback is called. The blocking client then calls the callbacks and closes the connections.
        """
        await self._leave(has_failed=has_failed, timeout=timeout)

    async def let_go(self) -> None:
        """Close the connections, without leaving the group."""
        self._is_closed = True
        await self._client.close()

    async def _leave(self, *, has_failed: bool = False, timeout: float | None = None) -> None:
        self._stops += 1
        timeout_s = CLOSE_PATIENCE_S if timeout is None else timeout
        if not self.config.is_explicit and not has_failed:
            self.holdings.acknowledge_all(AcknowledgeType.ACCEPT)
        self.holdings.drop_renewals()
        self._handing_out.forget()
        fetcher, self.fetcher = self.fetcher, None
        member, self._member = self._member, None
        membership, self._membership = self._membership, None
        try:
            if fetcher is not None:
                await fetcher.close(timeout_s)
            for task in list(self._commits):
                task.cancel()
            await asyncio.gather(*self._commits, return_exceptions=True)
        finally:
            if member is not None and membership is not None:
                membership.leave(member.now)
                member.pump()
                await member.close()
        self.holdings.forget()

    # -- what to read

    @checked(on_acknowledged=optional(function))
    def subscribe(
        self, topics: str | Iterable[str], *, on_acknowledged: AcknowledgementCallback | None = None
    ) -> None:
        """Join the share group, and read records of these topics together with its other members.

        Subscribing again replaces the topics and the callback. `on_acknowledged` is called after brokers have
        answered acknowledgements, with ranges of offsets by partition, and the error or None. It runs inside
        `poll`, `commit` or `close`, and may be a coroutine function. Share groups do not support patterns.

        Raises:
            ConfigError: no topic, or a pattern.
        """
        names = [topics] if isinstance(topics, str) else arguments.names(list(topics), "subscribe()")
        for name in names:
            if name.startswith("^"):
                raise ConfigError(f"{name!r}: share groups know no patterns; subscribe to names of topics")
            arguments.topic_name(name)
        if not names:
            raise ConfigError("subscribe() needs a topic; to stop, call unsubscribe()")
        self._topics = tuple(names)
        self._callback = on_acknowledged
        self.holdings.collects_outcomes = on_acknowledged is not None
        if self._member is not None:
            self._call_soon(self._resubscribe)

    def _resubscribe(self) -> None:
        if self._member is not None:
            self._member.membership.subscribe(self._topics, self._member.now)
            self._member.pump()

    def subscription(self) -> set[str]:
        """Return the topics that this consumer is subscribed to."""
        return set(self._topics)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that the group has assigned to this member; others may have them, too."""
        return sorted(self._membership.assignment) if self._membership is not None else []

    async def unsubscribe(self) -> None:
        """Send acknowledgements as `close` does, and leave the group."""
        await self._leave()
        await self.notify()
        self._topics = ()

    # -- records

    async def poll(
        self, timeout_ms: float = 1_000.0, max_records: int | None = None
    ) -> list[ShareRecord[K, V]]:
        """Return the next records, at most `max_records`; wait up to `timeout_ms` for the first.

        The default of `max_records` is ``max.poll.records``. In implicit mode this call accepts the records
        of the last poll. Records whose locks were renewed are returned before any new records.

        Raises:
            ConfigError: a record of the last poll has no acknowledgement (explicit mode); no subscription.
            KafkaError: the group refuses the member, or the client is not authorized for a topic.
            CorruptRecordError: a batch is damaged. Its records are rejected.
            DeserializationError: a deserializer has raised. The error has the record, which is released.
            UnsupportedVersionError: the cluster has no share groups.
            NetworkError: the client has not reached any broker so far.
        """
        limit = self.poll_limit(max_records)
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        self.begin_poll()
        again = await self.renewed(deadline)
        await self.notify()
        if again:
            return self.rows_again()
        while True:
            records = self.poll_now(limit)
            if records or not await self.wait(deadline, limit):
                await self.notify()
                return records

    async def poll_arrow(
        self,
        timeout_ms: float = 1_000.0,
        *,
        columns: Sequence[str] = SHARE_COLUMN_NAMES,
        batch_bytes: int = ARROW_BATCH_BYTES,
    ) -> pa.RecordBatch | None:
        """Return the next records of one partition as an Arrow batch with the given columns, in that order.

        ``deliveryCount`` is how often each record was delivered. `acknowledge` takes the batch, or slices and
        filtered parts of it, as long as they have the columns topic, partition and offset. The batch has
        about `batch_bytes` bytes, or less. Returns None if no records come within `timeout_ms`. Raises as
        `poll`.
        """
        need_arrow("poll_arrow")
        names = column_names(columns, SHARE_COLUMN_NAMES)
        size(batch_bytes, "batch_bytes")
        deadline = time.monotonic() + poll_ms(timeout_ms, "timeout_ms") / 1000
        self.begin_poll()
        again = await self.renewed(deadline)
        await self.notify()
        if again:
            return self.batch_again()
        while True:
            batch = self.poll_arrow_now(names, batch_bytes)
            if batch is not None or not await self.wait(deadline, self.config.max_poll_records):
                await self.notify()
                return batch

    def poll_limit(self, max_records: int | None) -> int:
        """Return the maximum number of records of one poll: `max_records`, or ``max.poll.records`` if None.

        Raises:
            ConfigError: `max_records` is not a whole number above 0.
        """
        return self.config.max_poll_records if max_records is None else size(max_records, "max_records")

    def begin_poll(self) -> None:
        """Accept the records of the last poll, or check in explicit mode that all are acknowledged.

        Any thread may call this method. Raises ConfigError as `poll`.
        """
        if not self._topics:
            raise ConfigError("nothing to read: call subscribe() first")
        if not self.config.is_explicit:
            self.holdings.acknowledge_all(AcknowledgeType.ACCEPT)
        elif held := self.holdings.held:
            raise ConfigError(
                f"{held} records of the last poll have no acknowledgement: call acknowledge() for each "
                "before the next poll, or take share.acknowledgement.mode implicit"
            )

    def poll_now(self, limit: int) -> list[ShareRecord[K, V]]:
        """Return records that have been fetched already. Any thread may call this method.

        Raises as `poll`.
        """
        records = self._handing_out.rows(limit)
        if records:
            self._flush_if_due()
        return records

    def poll_arrow_now(self, columns: Sequence[str], batch_bytes: int) -> pa.RecordBatch | None:
        """Return records that have been fetched already as an Arrow batch, or None. Raises as `poll`.

        Any thread may call this method.
        """
        batch = self._handing_out.batch(columns, batch_bytes)
        if batch is not None:
            self._flush_if_due()
        return batch

    def _flush_if_due(self) -> None:
        """Send acknowledgements if none were sent for a while, since polls that never wait send none."""
        now = time.monotonic()
        if now >= self._flush_at and self.holdings.is_decided:
            self._flush_at = now + FLUSH_EVERY_S
            self.flush()

    def flush(self) -> None:
        """Send acknowledgements; a broker with a request in flight gets them later.

        Any thread may call this.
        """
        self._call_soon(lambda: self.fetcher.pump() if self.fetcher is not None else None)

    def _call_soon(self, call: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    async def renewed(self, deadline: float) -> bool:
        """Send the renewals of locks that the application has asked for, and wait for the answers.

        Returns True if the next poll must return the renewed records again.
        """
        if not self.holdings.has_renewed:
            return False
        await self._commit_all(self.config.default_api_timeout_ms)
        return self._handing_out.has_again()

    def rows_again(self) -> list[ShareRecord[K, V]]:
        """Return the records whose locks were renewed. Raises ConfigError as `HandingOut.rows_again`."""
        return self._handing_out.rows_again()

    def batch_again(self) -> pa.RecordBatch:
        """Return the records whose locks were renewed, as an Arrow batch."""
        return self._handing_out.batch_again()

    async def wait(self, deadline: float, limit: int, is_strict: bool | None = None) -> bool:
        """Fetch, and wait for records; return False if none have come by the `deadline`. Raises as `poll`."""
        fetcher, member, membership = await self._begin()
        if error := membership.take_error() or fetcher.take_error():
            raise error
        config = self.config
        terms = FetchTerms(
            min(limit, config.max_poll_records),
            config.max_poll_records,
            int(max(0.0, min(config.fetch_max_wait_ms, (deadline - time.monotonic()) * 1000))),
            config.fetch_min_bytes,
            config.fetch_max_bytes,
            config.is_strict if is_strict is None else is_strict,
        )
        membership.poll_begins(member.now)
        member.pump()
        try:
            loop = asyncio.get_running_loop()
            until = loop.time() + deadline - time.monotonic()
            stops = self._stops
            has_more = await fetcher.wait(
                until, terms, lambda: membership.error is not None or self._stops != stops
            )
        finally:
            membership.poll_ends(member.now)
            member.pump()
        if error := membership.take_error() or fetcher.take_error():
            raise error
        return has_more and not self._is_closed

    async def _begin(self) -> tuple[ShareFetcher, MembershipDriver[Driven], ShareMembership]:
        """Return the fetcher, the member's driver and its state, and create them at the first call."""
        await self.start()
        config = self.config
        if self.fetcher is None or self._member is None or self._membership is None:
            assert config.group_id is not None
            client = self._client
            settings = MemberSettings(
                config.group_id,
                max_poll_interval_ms=config.max_poll_interval_ms,
                request_timeout_ms=config.request_timeout_ms,
                client_rack=config.client_rack,
            )
            membership = self._membership = ShareMembership(
                settings, self.member_id, lambda tries: client.backoff.seconds(tries, client.dice) * 1000
            )
            fetcher = self.fetcher = ShareFetcher(
                client,
                config.group_id,
                self.member_id,
                self.holdings,
                lambda: membership.assignment,
                needs_limit=config.is_strict,
            )

            def notice() -> None:
                fetcher.pump()
                if membership.error is not None:
                    fetcher.announce()

            self._member = MembershipDriver(
                client,
                CoordinatorFinder(client, config.group_id),
                membership,
                on_change=notice,
                is_alive=self._is_alive,
                topics_wanted=lambda: None,
            )
        if self._membership.phase is Phase.OUT:
            self._membership.subscribe(self._topics, self._member.now)
        return self.fetcher, self._member, self._membership

    def _is_alive(self) -> bool:
        """Return True if the application has taken records since the last call of this method."""
        before, self._seen_alive = self._seen_alive, self.holdings.counted
        return before != self._seen_alive

    def keep_alive(self) -> None:
        """Record that the application processes records, as if it had polled. Call this on the event loop."""
        if self._member is not None:
            self._member.membership.polled(self._member.now)
            self._member.pump()

    async def __aiter__(self) -> AsyncIterator[ShareRecord[K, V]]:
        """Yield records for ever, and wait for new ones.

        In implicit mode, asking for the next record accepts the one before.
        """
        breathe_at = time.monotonic() + BREATH_S
        while True:
            self.begin_poll()
            if await self.renewed(time.monotonic() + ITERATION_POLL_S):
                for record in self.rows_again():
                    yield record
                continue
            records = self.poll_now(1)
            if records:
                yield records[0]
                if breathe_at < time.monotonic():
                    await asyncio.sleep(0)
                    breathe_at = time.monotonic() + BREATH_S
            else:
                await self.notify()
                await self.wait(time.monotonic() + ITERATION_POLL_S, self.config.max_poll_records)

    # -- acknowledgements

    def acknowledge(self, what: Any, type: AcknowledgeType | str = AcknowledgeType.ACCEPT) -> None:
        """Acknowledge a record of the last poll, several of them, or rows of an Arrow batch.

        `what` is a record, an iterable of records, or a record batch or table with the columns topic,
        partition and offset: the batch, or a slice or a filtered part of it. The acknowledgement is sent with
        the next poll, `commit` or `close`; until then a later one replaces it. ``renew`` prolongs the lock,
        and the next poll returns the records again.

        Raises:
            ConfigError: the mode is implicit, the consumer has no lock on a record, or there is no such type.
        """
        kind = self._explicit(type)
        if kind is AcknowledgeType.RENEW and not self.is_limit_possible:
            raise ConfigError("renew needs Kafka 4.2 or newer: accept, release or reject instead")
        self._handing_out.acknowledge(what, kind)

    def acknowledge_offsets(
        self,
        partition: TopicPartition | tuple[str, int],
        first: int,
        last: int,
        type: AcknowledgeType | str = AcknowledgeType.ACCEPT,
    ) -> None:
        """Acknowledge the offsets from `first` to `last`, both inclusive.

        This consumer must hold the locks of all these offsets.

        Use it for rows of an Arrow batch without the columns that `acknowledge` needs. ``renew`` is not
        possible this way. Raises as `acknowledge`.
        """
        kind = self._explicit(type)
        if kind is AcknowledgeType.RENEW:
            raise ConfigError("renew takes records, or rows of Arrow: acknowledge(what, 'renew')")
        tp = arguments.topic_partition(partition)
        first, last = whole(first, "first"), whole(last, "last")
        if not 0 <= first <= last:
            raise ConfigError(f"offsets {first} to {last}: the first must not be above the last")
        self.holdings.acknowledge(tp, first, last, kind)

    def _explicit(self, type: object) -> AcknowledgeType:
        kind = AcknowledgeType.of(type)
        if not self.config.is_explicit:
            raise ConfigError(
                'acknowledge() needs the option "share.acknowledgement.mode" = "explicit"; in implicit mode '
                "the next poll accepts records"
            )
        return kind

    @checked(timeout_ms=optional(arguments.milliseconds))
    async def commit(self, timeout_ms: float | None = None) -> dict[TopicPartition, PenstockError | None]:
        """Send acknowledgements and wait for the responses; return a dict from partition to error or None.

        In implicit mode this accepts the records of the last poll. The call waits for `timeout_ms` at most,
        by default ``default.api.timeout.ms``.

        Raises:
            RequestTimeoutError: a broker has not answered in time; its records may be delivered again.
        """
        results = await self.commit_now(timeout_ms)
        await self.notify()
        return results

    async def commit_now(self, timeout_ms: float | None) -> dict[TopicPartition, PenstockError | None]:
        """Send acknowledgements and return the outcomes as `commit` does, but call no callback."""
        if not self.config.is_explicit:
            self.holdings.acknowledge_all(AcknowledgeType.ACCEPT)
        return await self._commit_all(
            self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        )

    async def _commit_all(self, timeout_ms: float) -> dict[TopicPartition, PenstockError | None]:
        fetcher, holdings = self.fetcher, self.holdings
        if fetcher is None:
            return {}
        number = holdings.begin_commit()
        try:
            deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
            fetcher.commit(timeout_ms / 1000)
            holdings.seal_commit()
            while not holdings.is_settled(number):
                if not await fetcher.settled(number, deadline):
                    raise RequestTimeoutError(
                        f"acknowledgements were not answered within {timeout_ms / 1000:g} s: their records "
                        "may come again"
                    )
                if error := fetcher.take_error():
                    raise error
        finally:
            results = holdings.end_commit(number)
        return results

    def commit_async(self) -> None:
        """Send acknowledgements in the background; `on_acknowledged` is called with their outcomes.

        In implicit mode this accepts the records of the last poll. Any thread may call this method.
        """
        if not self.config.is_explicit:
            self.holdings.acknowledge_all(AcknowledgeType.ACCEPT)
        self.flush()

    async def notify(self) -> None:
        """Call `on_acknowledged` with the outcomes that have arrived."""
        for call in self.notices():
            outcome = call()
            if inspect.isawaitable(outcome):
                await outcome

    def notices(self) -> list[Callable[[], object]]:
        """Return the calls of `on_acknowledged` that are due: one for all successes, one for each error."""
        callback = self._callback
        outcomes = self.holdings.take_outcomes() if callback is not None else []
        if callback is None or not outcomes:
            return []
        well: dict[TopicPartition, list[range]] = {}
        calls: list[Callable[[], object]] = []
        for outcome in outcomes:
            if outcome.error is None:
                well.setdefault(outcome.group.tp, []).extend(outcome.offsets)
                continue
            failed = {outcome.group.tp: outcome.offsets}
            calls.append(lambda failed=failed, error=outcome.error: callback(failed, error))  # type: ignore[misc]
        if well:
            calls.insert(0, lambda: callback({tp: joined(ranges) for tp, ranges in well.items()}, None))
        return calls

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The lock duration of this group's records in milliseconds; None before the first fetch."""
        return self.fetcher.lock_timeout_ms if self.fetcher is not None else None

    # -- a pool of workers

    async def run(
        self,
        handler: Handler,
        workers: int = 8,
        *,
        on_error: OnError | None = None,
        idle_ms: float | None = None,
    ) -> PoolSummary:
        """Run workers that process records until `stop` is called, or no record has come for `idle_ms`.

        Each worker calls `handler` with one record at a time: a coroutine function on this loop, any other
        function in a thread. A record is accepted when `handler` returns, and released when it raises;
        `handler` may return another type, such as ``"reject"``. After an exception, `on_error` is called with
        the record and the exception, and may return a type as well. Locks of records that are being processed
        are renewed in time. Both modes of acknowledgement work.

        Returns:
            How many records were accepted, released and rejected, and how many acknowledgements were refused.

        Raises:
            ConfigError: no subscription, records of a poll are not acknowledged, or an argument is wrong.
            PenstockError: as `poll`.
        """
        from penstock.client.share.workers import WorkerPool  # rarely needed, and has threads

        return await WorkerPool(self, handler, workers, on_error, idle_ms).run()

    async def commit_pool(self) -> None:
        """Send the acknowledgements of a worker pool, wait for the answers, and call `on_acknowledged`."""
        await self._commit_all(self.config.default_api_timeout_ms)
        await self.notify()

    @property
    def is_limit_possible(self) -> bool:
        """True if brokers can limit a fetch to a number of records, and can renew locks (Kafka 4.2)."""
        return self.fetcher is None or self.fetcher.can_renew is not False

    def stop(self) -> None:
        """Make `run` return once its workers have finished their current records.

        Any thread may call this.
        """
        self._stops += 1

        def wake() -> None:
            if self.fetcher is not None:
                self.fetcher.announce()

        self._call_soon(wake)

    @property
    def stops(self) -> int:
        """The number of calls of `stop` or `close` so far, from which running workers detect a new call."""
        return self._stops

    # -- what there is to say

    def stats(self) -> Statistics:
        """Return a snapshot of this consumer's counters. Any thread may call this method."""
        from penstock.client.cluster.client_statistics import client_statistics
        from penstock.client.statistics import GroupStatistics

        membership = self._membership
        phase = membership.phase if membership is not None else Phase.OUT
        return client_statistics(
            self._client,
            "consumer",
            fetchq_size=self.holdings.size_bytes,
            rxmsgs=self.holdings.counted,
            rxmsg_bytes=self.holdings.counted_bytes,
            cgrp=GroupStatistics(
                group_id=self.config.group_id or "",
                member_id=self.member_id,
                state="up" if phase is Phase.STABLE else phase.name.lower(),
                assignment_size=len(self.assignment()),
                rebalance_cnt=membership.changes if membership is not None else 0,
                rebalance_age=0,
            ),
        )
