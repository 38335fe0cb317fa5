"""A fetcher, which keeps one Fetch request in flight at every leader, for a changing set of cursors.

A fetcher belongs to one event loop; any thread may call `start`, `stop` and `take`. A part is what one
response has for one partition. The fetcher returns the parts of a partition in offset order, each once. It
buffers at most ``buffered_bytes_max`` bytes plus one response per leader. It never requests records at or
after the end of a cursor.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from penstock.client.background_loop import KeyedTasks
from penstock.client.cluster.client import FETCH, AsyncClient
from penstock.client.cluster.connection import AbandonedError
from penstock.client.cluster.metadata import NO_NODE, NO_TOPIC_ID, is_recreated, recreated
from penstock.client.cluster.retry import RetryVerdict, judge, left_out, timed_out
from penstock.client.cluster.topic_settings import is_compacted
from penstock.client.fetch.cursors import (
    Cursor,
    FetchedPart,
    FetchSettings,
    ReadReplicas,
    cut_batch_bytes,
    fetch_answers,
    fetch_request,
    fetch_version_limit,
    measure,
)
from penstock.common.logs import logger_named
from penstock.errors import DecodeError, KafkaError, PenstockError, ProtocolViolationError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.fetch_response import FetchResponse, PartitionData

AGAIN_AFTER_S = 1.0
"""The pause in seconds before the fetcher runs again after an unexpected exception."""

TIMEOUT_SLACK_S = 1.0
EMPTY_ANSWERS_MAX = 3
"""The number of responses in a row without records, although the log has more records, that lead to a check
for compaction.
"""

OFFSET_MAX = 2**63 - 1

JUMP_OFFSETS_MAX = 1 << 20
"""The maximum distance in offsets of a record beyond the high watermark of its response; a larger one is an
error. Brokers read the watermark before the records, so that records written in between are included. An
offset with a flipped bit is much farther away."""

COMPLAIN_AFTER_S = 5.0
COMPLAIN_EVERY_S = 60.0
"""The interval in seconds between log messages about fetches that fail and are retried."""

PARKED_AFTER_S = 0.02
"""The time in seconds after which a fetch without a response is taken to wait at the broker for records."""

BEYOND_END_PATIENCE_S = 5.0
"""The time in seconds for which a cursor that must read beyond the end of the log is retried: a new leader
may still lack records that the old one has returned. After that, the cursor ends with an error.
"""

SIZE_MAX_LIMIT = 1 << 30

NO_RECORDS = memoryview(b"")

log = logger_named("penstock.client")


class Fetcher:
    """Fetches the records at its cursors, and puts them into `buffer`, from which `take` returns them."""

    def __init__(self, client: AsyncClient, settings: FetchSettings) -> None:
        self.cursors: dict[TopicPartition, Cursor] = {}
        self._client = client
        self._settings = settings
        if settings.limits.isolation_level:
            client.insist_on_versions()
        max_age_s = client.config.metadata_max_age_ms / 1000
        self._replicas = ReadReplicas(client.cluster, settings.limits.rack, max_age_s)
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._lock = threading.Lock()
        """A lock for changes of `cursors`."""
        self.buffer = FetchBuffer(self._loop, settings.buffered_bytes_max)
        self._under_way: dict[int, tuple[Sequence[Cursor], float]] = {}
        """A dict from node id to the cursors of the request in flight, and the time at which it was sent."""
        self._tasks = KeyedTasks(self._loop, self.wake)
        self._timer: asyncio.TimerHandle | None = None
        self._complain_at = 0.0
        self._is_woken = False
        self._is_closed = False

    # -- what to fetch

    def start(self, cursor: Cursor) -> None:
        """Fetch at a cursor, which replaces the current cursor of the same partition."""
        self.stop([cursor.tp])
        with self._lock:
            self.cursors[cursor.tp] = cursor
        self.wake()

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching some partitions, and drop their records from the buffer."""
        with self._lock:
            gone = set(partitions) & self.cursors.keys()
            for tp in gone:
                self.cursors.pop(tp).is_dropped = True
        if gone:
            self.buffer.discard(gone)
            self._on_loop(lambda: self._interrupt(gone))

    def _interrupt(self, gone: set[TopicPartition]) -> None:
        """Abandon requests for partitions in `gone` that wait at a broker until records come.

        Later requests to that broker would queue behind them. A request is not abandoned if its response has
        begun, or if it was sent just now.
        """
        now = self._loop.time()
        for node_id, (cursors, started) in self._under_way.items():
            if not any(cursor.tp in gone and cursor.is_dropped for cursor in cursors):
                continue
            if now - started < PARKED_AFTER_S:
                self._loop.call_at(started + PARKED_AFTER_S, self._interrupt, gone)
                return
            peer = self._client.live_peer(node_id, FETCH)
            if peer is not None and not peer.connection.is_receiving:
                peer.connection.close(AbandonedError("the fetch is no longer wanted"))

    def wake(self) -> None:
        """Schedule a run of the fetcher on its event loop, which sends the requests that can be sent."""
        if not self._is_woken and not self._is_closed:
            self._is_woken = True
            self._on_loop(self._pump)

    def _on_loop(self, action: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread_id:
            self._loop.call_soon(action)
        else:
            self._loop.call_soon_threadsafe(action)

    def _cursors(self) -> list[Cursor]:
        with self._lock:
            return list(self.cursors.values())

    # -- what has come

    def take(self) -> FetchedPart | None:
        """Return the next fetched records of one partition, or None. Any thread may call this method."""
        part, has_room_again = self.buffer.take()
        if has_room_again:
            self.wake()
        return part

    async def wait(self, timeout_s: float | None, is_enough: Callable[[], bool] = lambda: False) -> bool:
        """Wait until `take` has records; return False if it has none after `timeout_s` seconds.

        The wait also ends once `is_enough()` is true, which is checked when a part arrives.
        """
        return await self.buffer.wait(timeout_s, self.wake, is_enough)

    async def close(self) -> None:
        """Stop fetching. Fetched parts in the buffer may still be taken."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()

    # -- the turn

    def _pump(self) -> None:
        self._is_woken = False
        if self._is_closed or not self.buffer.has_room:
            return
        now = self._loop.time()
        try:
            wake_at = self._take_turn(now)
        except Exception:
            # Without another turn nothing would ever be fetched again.
            log.exception("a turn of the fetcher has failed; the next one is due in %g s", AGAIN_AFTER_S)
            wake_at = now + AGAIN_AFTER_S
        self._arm(wake_at)

    def _take_turn(self, now: float) -> float:
        """Send the requests that are due; return the time to run again, on the event loop's clock."""
        wake_at = float("inf")
        by_node: dict[int, list[Cursor]] = {}
        leaderless = False
        for cursor in self._cursors():
            if cursor.is_stopped or cursor.is_finished or self._is_of_another_topic(cursor):
                continue
            if cursor.not_before > now:
                wake_at = min(wake_at, cursor.not_before)
                continue
            node_id = self._replicas.node_of(cursor, now)
            if node_id is None:
                leaderless = True
            elif node_id not in self._under_way:
                by_node.setdefault(node_id, []).append(cursor)
        for node_id, cursors in by_node.items():
            self._fetch(node_id, cursors)
        if leaderless or (self._client.metadata_is_old and self.cursors):
            self._tasks.start("metadata", self._fetch_metadata())
        return wake_at

    def _is_of_another_topic(self, cursor: Cursor) -> bool:
        """Return True if a cursor's topic was deleted and created anew, and end the cursor with an error."""
        topic_id = self._client.cluster.topic_id(cursor.tp.topic)
        if is_recreated(cursor.topic_id, topic_id):
            if not cursor.is_stopped:
                why = f"offset {cursor.offset} of partition {cursor.tp.partition} was of the old one"
                self._give_up(cursor, recreated(cursor.tp.topic, cursor.topic_id, topic_id, why))
            return True
        if cursor.topic_id == NO_TOPIC_ID:
            cursor.topic_id = topic_id
        return False

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when < float("inf"):
            self._timer = self._loop.call_at(when, self._pump)

    def _fetch(self, node_id: int, cursors: Sequence[Cursor]) -> None:
        peer = self._client.live_peer(node_id, FETCH)
        if peer is None:
            self._tasks.start(node_id, self._connect(node_id, cursors))
            return
        limits = self._settings.limits
        cluster = self._client.cluster
        rack = self._replicas.rack_for(cursors, self._loop.time())
        request = fetch_request(cursors, cluster, limits, rack)
        try:
            version = peer.versions.choose(FetchRequest, fetch_version_limit(cursors, cluster))
            timeout_s = self._client.request_timeout_s + limits.max_wait_ms / 1000 + TIMEOUT_SLACK_S
            future = peer.connection.request(request, version, timeout_s)
        except PenstockError as error:
            self._failed(cursors, error, node_id)
            return
        asked = [(cursor, cursor.offset) for cursor in cursors]
        self._under_way[node_id] = (cursors, self._loop.time())
        future.add_done_callback(lambda done: self._answered(node_id, asked, done))

    # -- answers

    def _answered(self, node_id: int, asked: Sequence[tuple[Cursor, int]], done: asyncio.Future[Any]) -> None:
        cursors, started = self._under_way.pop(node_id, ((), 0.0))
        error = None if done.cancelled() else done.exception()
        if done.cancelled() or self._is_closed:
            return
        if error is not None:
            if not isinstance(error, AbandonedError):
                reason = error if isinstance(error, PenstockError) else DecodeError(str(error))
                self._failed(cursors, reason, node_id)
            self.wake()
            return
        answer: FetchResponse = done.result()
        if answer.error_code:
            error = error_for(answer.error_code, f"fetching from broker {self._client.address_of(node_id)}")
            self._failed(cursors, error, node_id)
        else:
            had_parts = len(self.buffer)
            self._take_answer(node_id, answer, asked)
            if len(self.buffer) == had_parts:
                self._slow_down(node_id, asked, started)
        self.buffer.announce()
        # Straight on, so that the next answer is under way while this one is decoded.
        self._pump()

    def _take_answer(self, node_id: int, answer: FetchResponse, asked: Sequence[tuple[Cursor, int]]) -> None:
        broker = self._client.address_of(node_id)
        answers = dict(fetch_answers(answer, self._client.cluster))
        throttle_s = self._client.throttle_s(broker, answer.throttle_time_ms)
        not_before = self._loop.time() + throttle_s if throttle_s else 0.0
        for index, (cursor, offset) in enumerate(asked):
            if cursor.is_dropped or self._is_of_another_topic(cursor):
                continue
            data = answers.get(cursor.tp)
            if data is None:
                # A broker that throttles leaves everything out (since Kafka 2.0).
                self._failed(
                    [cursor],
                    error_for(ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"fetching {cursor.tp} from {broker}")
                    if throttle_s
                    else left_out(broker, f"partition {cursor.tp}", "Fetch"),
                    NO_NODE if throttle_s else node_id,
                )
                cursor.not_before = max(cursor.not_before, not_before)
                continue
            cursor.not_before = not_before
            if data.error_code:
                self._refused(cursor, offset, data.error_code, node_id)
                continue
            if self._replicas.sent_on(cursor, node_id, data.preferred_read_replica, self._loop.time()):
                continue
            try:
                self._take_partition(cursor, offset, data, broker, was_first=index == 0 and not throttle_s)
            except ProtocolViolationError as error:
                self._failed([cursor], error, node_id)
            except DecodeError as error:
                self._give_up(cursor, error)

    def _refused(self, cursor: Cursor, offset: int, code: int, node_id: int) -> None:
        """Handle a partition's error code. If a follower answers "out of range", ask the leader next."""
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self._replicas.failed(
            cursor, node_id, self._loop.time()
        ):
            return
        broker = self._client.address_of(node_id)
        what = f"fetching {cursor.tp} at offset {offset} from broker {broker}"
        self._failed([cursor], error_for(code, what), node_id)

    def _slow_down(self, node_id: int, asked: Sequence[tuple[Cursor, int]], started: float) -> None:
        """Delay the next request to a broker that has answered early, without any records."""
        limits, now = self._settings.limits, self._loop.time()
        if limits.min_bytes and now - started < limits.max_wait_ms / 2000:
            for cursor, offset in asked:
                if cursor.offset == offset and cursor.replica in (NO_NODE, node_id):
                    pause_s = self._client.backoff.seconds(cursor.empties, self._client.dice)
                    cursor.not_before = max(cursor.not_before, now + pause_s)

    def _take_partition(
        self, cursor: Cursor, offset: int, data: PartitionData, broker: object, *, was_first: bool
    ) -> None:
        cursor.high_watermark = data.high_watermark
        cursor.last_stable_offset = data.last_stable_offset
        cursor.log_start_offset = data.log_start_offset
        records = memoryview(data.records) if data.records is not None else NO_RECORDS
        next_offset, size = measure(records, offset)
        if not size:
            if records.nbytes:
                self._note_cut(cursor, records, broker)
            else:
                self._note_empty(cursor, data, broker, was_first=was_first)
            return
        limit = data.high_watermark + JUMP_OFFSETS_MAX if data.high_watermark >= 0 else OFFSET_MAX
        if not offset < next_offset <= limit:
            raise ProtocolViolationError(
                f"broker {broker} answered a fetch of {cursor.tp} at offset {offset} with records that "
                f"end at {next_offset}; the partition ends at {data.high_watermark}"
            )
        cursor.advance(next_offset, size)
        aborted = [(a.producer_id, a.first_offset) for a in data.aborted_transactions or ()]
        self.buffer.put(
            FetchedPart(cursor, cursor.tp, records[:size], offset, next_offset, aborted, data.high_watermark)
        )
        # A partition that had records goes last next time: brokers fill their answers in order. A cursor with
        # an end stays first until it is there, so that ranges come one after the other.
        if cursor.end is None:
            with self._lock:
                if not cursor.is_dropped:
                    self.cursors[cursor.tp] = self.cursors.pop(cursor.tp)

    def _note_cut(self, cursor: Cursor, records: memoryview, broker: object) -> None:
        """Raise the size limit of the next request, because only the beginning of a batch has come.

        Raises:
            DecodeError: the batch is larger than ``receive.message.max.bytes``.
            ProtocolViolationError: the batch fits into the current limit.
        """
        wanted, batch_bytes = cursor.wanted_bytes, cut_batch_bytes(records)
        what = f"a batch of {batch_bytes} bytes at offset {cursor.offset} of {cursor.tp}"
        bytes_max = min(SIZE_MAX_LIMIT, self._client.config.receive_message_max_bytes)
        if batch_bytes > bytes_max:
            name = "receive.message.max.bytes"
            raise DecodeError(f"{what}, from broker {broker}, does not fit into {name} = {bytes_max}")
        if wanted < batch_bytes:
            cursor.size_max = min(max(cursor.size_max * 2, batch_bytes), bytes_max)
            cursor.record_bytes = max(cursor.record_bytes * 2, float(cursor.size_max))
            return
        raise ProtocolViolationError(
            f"broker {broker} sent {records.nbytes} bytes of {what}, although {wanted} were asked for"
        )

    def _note_empty(self, cursor: Cursor, data: PartitionData, broker: object, *, was_first: bool) -> None:
        """Handle the response for a partition without records.

        The log may have no more, compaction may have removed the records, or the broker is wrong.
        """
        visible = data.high_watermark
        if self._settings.limits.isolation_level and data.last_stable_offset >= 0:
            visible = min(visible, data.last_stable_offset)
        if cursor.end is None and visible <= cursor.offset:
            cursor.note_well()
            return
        # Brokers fill their answers in order: later partitions may have been left no room.
        if not was_first:
            return
        cursor.empties += 1
        if cursor.empties < EMPTY_ANSWERS_MAX:
            return
        if cursor.end is not None and visible < cursor.end:
            self._wait_for_end(cursor, visible)
        elif cursor.may_have_gaps:
            self._pass_gap(cursor, visible)
        else:
            self._tasks.start(cursor, self._look_for_gap(cursor, visible, broker))

    async def _look_for_gap(self, cursor: Cursor, visible: int, broker: object) -> None:
        """Check whether compaction has removed all records from the cursor to `visible`, the end of the log.

        If it has, the cursor continues there; if not, the response was wrong, and counts as a failure.
        """
        if cursor.may_have_gaps is None:
            cursor.may_have_gaps = await is_compacted(self._client, cursor.tp.topic)
        if cursor.is_dropped or not cursor.empties:
            return
        if cursor.may_have_gaps:
            self._pass_gap(cursor, visible)
            return
        why = "" if cursor.may_have_gaps is None else ", and the topic is not compacted"
        self._failed(
            [cursor],
            ProtocolViolationError(
                f"broker {broker} answers fetches of {cursor.tp} at offset {cursor.offset} with nothing, "
                f"although it says that the partition ends at {visible}{why}"
            ),
        )

    def _pass_gap(self, cursor: Cursor, visible: int) -> None:
        cursor.note_well()
        if cursor.end is not None:
            cursor.offset = cursor.end
            self.buffer.put(FetchedPart(cursor, cursor.tp, NO_RECORDS, cursor.end, cursor.end, (), visible))
            self.buffer.announce()

    def _wait_for_end(self, cursor: Cursor, visible: int) -> None:
        """Delay the next fetch of a cursor that has to read beyond `visible`, the end of the log.

        The replica may lag behind its leader, or the log may have been truncated.
        """
        now = self._loop.time()
        cursor.failing_since = cursor.failing_since or now
        cursor.not_before = now + self._client.backoff.seconds(0, self._client.dice)
        if self._replicas.is_behind(cursor, now):
            cursor.failing_since = 0.0
            return
        if now - cursor.failing_since >= BEYOND_END_PATIENCE_S:
            why = f"partition {cursor.tp} ends at {visible}; {cursor.offset} to {cursor.end} were asked for"
            self._give_up(cursor, KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", why))

    def _failed(self, cursors: Iterable[Cursor], error: PenstockError, node_id: int = NO_NODE) -> None:
        """Schedule another try for the cursors, or end them with `error`.

        `node_id` is the node asked, if any.
        """
        now = self._loop.time()
        verdict = judge(error)
        if verdict is not RetryVerdict.FATAL:
            self._client.troubles.note("fetching", error)
        for cursor in cursors:
            if cursor.is_dropped:
                continue
            if verdict is RetryVerdict.FATAL:
                self._give_up(cursor, error)
                continue
            self._replicas.failed(cursor, node_id, now)
            cursor.failing_since = cursor.failing_since or now
            if isinstance(error, ProtocolViolationError):
                cursor.violated_since = cursor.violated_since or now
            since, patience_s = cursor.failing_since, self._settings.patience_s
            if patience_s is None and isinstance(error, ProtocolViolationError):
                since, patience_s = cursor.violated_since, self._settings.violation_patience_s
            if patience_s is not None and now - since >= patience_s:
                self._give_up(cursor, timed_out(f"fetching {cursor.tp}", patience_s * 1000, error))
                continue
            self._complain(cursor, error, now)
            cursor.not_before = now + self._client.backoff.seconds(cursor.tries, self._client.dice)
            cursor.tries += 1
        if verdict is RetryVerdict.REFRESH:
            self._tasks.start("metadata", self._fetch_metadata())
        self.wake()

    def _complain(self, cursor: Cursor, error: PenstockError, now: float) -> None:
        """Log a warning if fetches of a partition have failed for some seconds, at most once a minute."""
        if now - cursor.failing_since >= COMPLAIN_AFTER_S and now >= self._complain_at:
            self._complain_at = now + COMPLAIN_EVERY_S
            since_s = now - cursor.failing_since
            log.warning("nothing of %s for %.0f s, trying on: %s", cursor.tp, since_s, error)

    def _give_up(self, cursor: Cursor, error: PenstockError) -> None:
        cursor.is_stopped = True
        self.buffer.put(
            FetchedPart(cursor, cursor.tp, NO_RECORDS, cursor.offset, cursor.offset, (), -1, error)
        )
        self.buffer.announce()

    # -- tasks in the background

    async def _connect(self, node_id: int, cursors: Sequence[Cursor]) -> None:
        try:
            await self._client.peer(node_id, FETCH)
        except PenstockError as error:
            self._failed(cursors, error, node_id)

    async def _fetch_metadata(self) -> None:
        try:
            await self._client.refresh(cursor.tp.topic for cursor in self._cursors())
        except PenstockError as error:
            self._failed([cursor for cursor in self._cursors() if self._is_nowhere(cursor)], error)
        else:
            self._check_topics()
        self.wake()
        await asyncio.sleep(self._client.backoff.seconds(0, self._client.dice))

    def _check_topics(self) -> None:
        """Count a failure for each partition that has no leader after a refresh of metadata."""
        for cursor in self._cursors():
            if self._is_nowhere(cursor) and not cursor.is_stopped:
                topic = self._client.cluster.topics.get(cursor.tp.topic)
                code = (topic.error_code if topic else 0) or ErrorCode.LEADER_NOT_AVAILABLE
                self._failed([cursor], error_for(code, f"partition {cursor.tp}"))

    def _is_nowhere(self, cursor: Cursor) -> bool:
        """Return True if the metadata have no node from which the partition can be read."""
        return self._replicas.node_of(cursor, self._loop.time()) is None


class FetchBuffer:
    """A queue of fetched parts that are not read yet: filled on the event loop, emptied from any thread.

    A part is what one Fetch response has for one partition. The buffer is full from `limit_bytes` on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int) -> None:
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._parts: deque[FetchedPart] = deque()
        self.size_bytes = 0
        self._waiting: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def has_room(self) -> bool:
        """True if the buffer has less than its limit, so that more may be fetched."""
        return self.size_bytes < self._limit_bytes

    def put(self, part: FetchedPart) -> None:
        """Add a fetched part at the end. Waiting readers are only woken by `announce`."""
        with self._lock:
            self._parts.append(part)
            self.size_bytes += part.size

    def take(self) -> tuple[FetchedPart | None, bool]:
        """Remove and return the oldest fetched part, or None.

        The second value is True if the buffer was full before, and has room again.
        """
        with self._lock:
            if not self._parts:
                return None, False
            part = self._parts.popleft()
            had_room = self.has_room
            self.size_bytes -= part.size
            return part, self.has_room and not had_room

    def discard(self, partitions: Collection[TopicPartition]) -> None:
        """Drop all fetched records of some partitions."""
        with self._lock:
            self._parts = deque(part for part in self._parts if part.tp not in partitions)
            self.size_bytes = sum(part.size for part in self._parts)

    async def wait(
        self, timeout_s: float | None, wake: Callable[[], object], is_enough: Callable[[], bool]
    ) -> bool:
        """Wait until the buffer has a fetched part, or `is_enough()` is true; return True if it has one.

        `wake` is called before each wait, `is_enough` after each `announce`. `timeout_s` is in seconds; None
        means no limit.
        """
        deadline = None if timeout_s is None else self._loop.time() + timeout_s
        while not self._parts and not is_enough():
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(future)
            wake()
            try:
                async with asyncio.timeout_at(deadline):
                    await future
            except TimeoutError:
                break
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        return bool(self._parts)

    def announce(self) -> None:
        """Wake every waiting reader. Call this method on the event loop."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
