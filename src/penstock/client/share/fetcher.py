"""The I/O of share sessions: fetches and acknowledgements, one request at a time at each broker.

Records are fetched only while the application waits, never ahead, because a fetched record is locked and no
other member can have it. Acknowledgements are sent with fetches where that is possible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.client.cluster.metadata import BrokerNode
from penstock.client.cluster.retry import RetryVerdict, judge
from penstock.client.group.coordinator import FINAL_SHARE_VERSION, NEEDS_SHARE_GROUPS
from penstock.client.share.errors import MOVED_CODES, SESSION_CODES, explain_acknowledgement
from penstock.client.share.holdings import AcquiredPart, Holdings, HoldingsToSend
from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.client.share.session import FetchTerms, SessionPartition, ShareMemberSession, ShareRequest
from penstock.common.logs import logger_named
from penstock.errors import (
    AuthorizationError,
    DecodeError,
    PenstockError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.share_fetch_request import ShareFetchRequest
from penstock.protocol.messages.share_fetch_response import PartitionData, ShareFetchResponse

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.cluster.connection import Connection
    from penstock.model import TopicPartition
    from penstock.protocol.messages.share_acknowledge_response import ShareAcknowledgeResponse

SHARE = "share"
"""The purpose of connections for share sessions. A session ends with the connection that has opened it."""

RENEWING_VERSION = 2
"""The first version of ShareFetch that limits records, and of ShareAcknowledge that renews locks."""

TIMEOUT_SLACK_S = 1.0
ACQUIRED_RANGES_MAX = 100_000
"""The maximum number of acquired ranges of one partition in a response. Brokers lock at most 4,000 records of
a partition."""

COMPLAIN_EVERY_S = 60.0

log = logger_named("penstock.client")


class ShareFetcher:
    """Fetches records and sends acknowledgements of one member, in share sessions with all brokers."""

    def __init__(
        self,
        client: AsyncClient,
        group_id: str,
        member_id: str,
        holdings: Holdings,
        assignment: Callable[[], Mapping[TopicPartition, bytes]],
        *,
        needs_limit: bool = False,
    ) -> None:
        self.lock_timeout_ms: int | None = None
        """The time in milliseconds for which brokers lock records, from the last response; None before it."""
        self.can_renew: bool | None = None
        """True if the last broker can limit records and renew locks; None before the first response."""
        self._needs_limit = needs_limit
        self._client = client
        self._group_id = group_id
        self._member_id = member_id
        self._holdings = holdings
        self._assignment = assignment
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[int, ShareMemberSession] = {}
        self._exchanges: dict[int, asyncio.Task[None]] = {}
        self._fetching: set[int] = set()
        """The nodes that have a fetch in flight."""
        self._tries: dict[int, int] = {}
        self._not_before: dict[int, float] = {}
        self._terms: FetchTerms | None = None
        """The limits of the fetches for the call that waits for records; None if no call waits."""
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._error: PenstockError | None = None
        self._complain_at = 0.0
        self._is_closing = False

    # -- what the consumer does

    async def wait(self, deadline: float, terms: FetchTerms, is_enough: Callable[[], bool]) -> bool:
        """Fetch, and wait for records or until `is_enough()` is true; return False after the `deadline`."""
        self._terms = terms
        try:
            return await self._wait(deadline, lambda: self._holdings.has_parts or is_enough())
        finally:
            self._terms = None

    async def settled(self, number: int, deadline: float) -> bool:
        """Wait until brokers have answered commit `number`; return False if not by the `deadline`."""
        return await self._wait(deadline, lambda: self._holdings.is_settled(number))

    async def _wait(self, deadline: float, is_enough: Callable[[], bool]) -> bool:
        while not is_enough() and self._error is None:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(future)
            try:
                self.pump()
                # What the pump has settled by itself has announced it already.
                async with asyncio.timeout_at(deadline):
                    await future
            except TimeoutError:
                return is_enough()
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        return True

    def announce(self) -> None:
        """Wake every waiting call, so that it checks its condition again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def take_error(self) -> PenstockError | None:
        """Return the error that the application's next call raises, or None, and clear it."""
        error, self._error = self._error, None
        return error

    def pump(self) -> None:
        """Send all acknowledgements and fetches that can be sent now. Fetches are for calls that wait.

        Acknowledgements for a broker with a request in flight wait, so that several are sent together.
        """
        if self._is_closing:
            return
        for decision in self._holdings.decisions(self._exchanges):
            self._route(decision)
        self._send_all()

    def commit(self, patience_s: float) -> None:
        """Send all acknowledgements; retry them for `patience_s` seconds after retriable errors."""
        if self._is_closing:
            return
        for decision in self._holdings.decisions(patience_s=patience_s):
            self._route(decision)
        self._send_all()

    def _send_all(self) -> None:
        """Send the next request to each broker that has none in flight."""
        nodes = self._wanted_by_node()
        order = sorted({*nodes, *self._sessions})
        if order:
            # One broker must not be asked first for ever: a limit of records is one over all brokers.
            self._turn = (self._turn + 1) % len(order)
            order = order[self._turn :] + order[: self._turn]
        wake_at = float("inf")
        for node_id in order:
            if node_id in self._exchanges:
                continue
            not_before = self._not_before.get(node_id, 0.0)
            if not_before > self._loop.time():
                wake_at = min(wake_at, not_before)
                continue
            request = self._next_request(node_id, nodes.get(node_id, {}))
            if request is not None:
                self._send(node_id, request)
            elif node_id in self._sessions:
                wake_at = min(wake_at, self._sessions[node_id].next_due)
        self._arm(wake_at)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when < float("inf"):
            self._timer = self._loop.call_at(when, self.pump)

    def _route(self, decision: HoldingsToSend) -> None:
        """Queue acknowledgements in their broker's session, or fail them if their partition has moved."""
        cluster = self._client.cluster
        tp, node_id = decision.tp, decision.node_id
        leader = cluster.leader(tp)
        if (leader is not None and leader != node_id) or node_id not in self._sessions:
            error = explain_acknowledgement(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, tp, self._client.address_of(node_id)
            )
            self._settle(decision.group, error)
            return
        self._sessions[node_id].acknowledge(SessionPartition(decision.topic_id, tp.partition), decision.group)

    def _settle(self, group: Any, error: PenstockError | None) -> None:
        self._holdings.settle(group, error)
        self.announce()

    def _wanted_by_node(self) -> dict[int, dict[TopicPartition, bytes]]:
        cluster = self._client.cluster
        found: dict[int, dict[TopicPartition, bytes]] = {}
        is_homeless = False
        for tp, topic_id in self._assignment().items():
            leader = cluster.leader(tp)
            if leader is None:
                is_homeless = True
            else:
                found.setdefault(leader, {})[tp] = topic_id
        if is_homeless:
            self._refresh()
        return found

    def _next_request(self, node_id: int, wanted: Mapping[TopicPartition, bytes]) -> ShareRequest | None:
        session = self._sessions.get(node_id)
        terms, now = self._terms, self._loop.time()
        may_fetch = bool(wanted) and terms is not None and not self._holdings.has_parts
        if may_fetch and terms is not None and terms.is_strict and self._fetching:
            may_fetch = False
        if session is None:
            if not may_fetch:
                return None
            session = self._sessions[node_id] = ShareMemberSession(
                self._group_id,
                self._member_id,
                self._settle,
                lambda: self._client.address_of(node_id),
                lambda tries: self._client.backoff.seconds(tries, self._client.dice),
            )
        if session.next_due <= now and not (may_fetch and session.can_carry(wanted, now)):
            request = session.acknowledgements(now)
            if request is not None:
                return request
        return session.fetch(wanted, terms, now) if may_fetch and terms is not None else None

    def _send(self, node_id: int, request: ShareRequest) -> None:
        is_fetch = isinstance(request, ShareFetchRequest)
        if is_fetch:
            self._fetching.add(node_id)
        task = self._loop.create_task(self._exchange(node_id, request))
        self._exchanges[node_id] = task

        def finish(done: asyncio.Task[None]) -> None:
            self._exchanges.pop(node_id, None)
            self._fetching.discard(node_id)
            if not done.cancelled() and done.exception() is not None:
                log.error("a request of a share consumer has failed", exc_info=done.exception())
            self.pump()
            self.announce()

        task.add_done_callback(finish)

    # -- requests and answers

    async def _exchange(self, node_id: int, request: ShareRequest) -> None:
        session = self._sessions[node_id]
        started = self._loop.time()
        try:
            answer, connection = await self._ask(node_id, request)
            self._note_leaders(session, answer)
            error = session.answered(answer, self._loop.time())
        except asyncio.CancelledError:
            session.failed(RequestTimeoutError("the share consumer was closed"))
            raise
        except PenstockError as trouble:
            error = trouble
            session.failed(trouble)
        except Exception as trouble:
            # Without an end of the request the session would wait for it for ever.
            error = DecodeError(f"an answer to a share consumer: {trouble!r}")
            session.failed(error)
            log.exception("an answer to a share consumer cannot be used")
        if error is not None:
            self._failed(node_id, error)
        elif isinstance(request, ShareFetchRequest):
            self._take(node_id, session, request, answer, started, connection)
        else:
            self._note_lock(answer.acquisition_lock_timeout_ms)
            self._tries.pop(node_id, None)

    async def _ask(self, node_id: int, request: ShareRequest) -> tuple[Any, Connection]:
        """Send a request to a broker; return the response, and the connection on which it arrived."""
        client = self._client
        peer = await client.peer(node_id, SHARE)
        version = peer.versions.choose(type(request))
        if version < FINAL_SHARE_VERSION:
            raise UnsupportedVersionError(NEEDS_SHARE_GROUPS)
        timeout_s = client.request_timeout_s
        if isinstance(request, ShareFetchRequest):
            self.can_renew = version >= RENEWING_VERSION
            timeout_s += request.max_wait_ms / 1000 + TIMEOUT_SLACK_S
            if version < RENEWING_VERSION:
                if self._needs_limit:
                    raise UnsupportedVersionError(
                        "share.acquire.mode=record_limit needs Kafka 4.2 or newer: take batch_optimized"
                    )
                request.share_acquire_mode = 0
        elif version < RENEWING_VERSION and request.is_renew_ack:
            raise UnsupportedVersionError(
                "prolonging locks needs Kafka 4.2 or newer: accept or release instead"
            )
        return await peer.connection.request(request, version, timeout_s), peer.connection

    def _failed(self, node_id: int, error: PenstockError) -> None:
        """Schedule another try at a broker; keep the error for the application if retries cannot help."""
        self._client.troubles.note("fetching", error)
        self._slow_down(node_id)
        code = getattr(error, "code", 0)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            error = UnsupportedVersionError(NEEDS_SHARE_GROUPS)
        if code in SESSION_CODES:
            log.debug("a share session is opened anew: %s", error)
        elif judge(error) is RetryVerdict.FATAL and code != ErrorCode.UNKNOWN_SERVER_ERROR:
            self._error = error
            self.announce()
        else:
            self._complain(error)
            self._refresh()

    def _slow_down(self, node_id: int) -> None:
        tries = self._tries.get(node_id, 0)
        self._tries[node_id] = tries + 1
        self._not_before[node_id] = self._loop.time() + self._client.backoff.seconds(tries, self._client.dice)

    def _complain(self, error: PenstockError) -> None:
        """Log a warning about errors that are retried, at most once a minute."""
        now = self._loop.time()
        if now >= self._complain_at:
            self._complain_at = now + COMPLAIN_EVERY_S
            log.warning("share group %s: trying on: %s", self._group_id, error)

    def _note_lock(self, lock_timeout_ms: int) -> None:
        if lock_timeout_ms > 0:
            self.lock_timeout_ms = lock_timeout_ms

    def _take(
        self,
        node_id: int,
        session: ShareMemberSession,
        request: ShareFetchRequest,
        answer: ShareFetchResponse,
        started: float,
        connection: Connection,
    ) -> None:
        """Take the records of a ShareFetch response, and the errors of partitions.

        A broker releases its locks when the connection ends, or when it is no longer the partition's leader.
        Another member may then have got the records, and have processed them, before this client returns
        them.
        """
        cluster = self._client.cluster
        self._note_lock(answer.acquisition_lock_timeout_ms)
        now = self._loop.time()
        lock_s = self.lock_timeout_ms / 1000 if self.lock_timeout_ms else float("inf")
        broker = self._client.address_of(node_id)
        throttle_s = self._client.throttle_s(broker, answer.throttle_time_ms)
        has_records = has_errors = False
        for topic in answer.responses:
            for data in topic.partitions:
                place = SessionPartition(bytes(topic.topic_id), data.partition_index)
                tp = session.partitions.get(place)
                if tp is None:
                    continue
                if data.error_code:
                    has_errors = True
                    self._refused(tp, data, node_id, broker)
                elif data.acquired_records:
                    has_records = True
                    records = memoryview(data.records) if data.records is not None else memoryview(b"")
                    acquired = acquired_runs(data, tp, broker)

                    def is_released(tp: TopicPartition = tp) -> bool:
                        return connection.cause is not None or cluster.leader(tp) not in (None, node_id)

                    self._holdings.add(
                        AcquiredPart(
                            tp, place.topic_id, node_id, records, acquired, now + lock_s, is_released
                        )
                    )
        carried = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
        if has_records:
            self._tries.pop(node_id, None)
        elif has_errors:
            self._slow_down(node_id)
        elif not carried and now - started < request.max_wait_ms / 2000:
            # Nothing at once, where the broker should have waited: keep a distance.
            self._slow_down(node_id)
        else:
            self._tries.pop(node_id, None)
        if throttle_s:
            self._not_before[node_id] = max(self._not_before.get(node_id, 0.0), now + throttle_s)

    def _refused(self, tp: TopicPartition, data: PartitionData, node_id: int, broker: object) -> None:
        error = error_for(data.error_code, f"fetching {tp} from broker {broker} for a share group")
        if data.error_code in MOVED_CODES:
            if self._client.cluster.leader(tp) in (None, node_id):
                self._refresh()  # the answer has not said who leads
        elif isinstance(error, AuthorizationError) or data.error_code == ErrorCode.CORRUPT_MESSAGE:
            self._error = error
        elif data.error_code != ErrorCode.UNKNOWN_SERVER_ERROR:
            # -1 is what a broker says of a partition that is not initialised for the group yet.
            self._complain(error)

    # -- metadata

    def _note_leaders(
        self, session: ShareMemberSession, answer: ShareFetchResponse | ShareAcknowledgeResponse
    ) -> None:
        """Store the new leaders of partitions that have moved, if the response has them (KIP-951)."""
        nodes = {
            each.node_id: BrokerNode(each.node_id, each.host, each.port) for each in answer.node_endpoints
        }
        for topic in answer.responses if nodes else ():
            for data in topic.partitions:
                tp = session.partition_at(SessionPartition(bytes(topic.topic_id), data.partition_index))
                leader = data.current_leader
                if tp is not None and leader.leader_id in nodes:
                    found = nodes[leader.leader_id]
                    self._client.cluster.note_leader(tp, leader.leader_id, leader.leader_epoch, found)

    def _refresh(self) -> None:
        if self._refreshing is None and not self._is_closing:
            self._refreshing = self._loop.create_task(self._ask_metadata())

    async def _ask_metadata(self) -> None:
        client = self._client
        try:
            await client.refresh({tp.topic for tp in self._assignment()})
        except PenstockError as error:
            client.troubles.note("fetching", error)
        finally:
            await asyncio.sleep(client.backoff.seconds(0, client.dice))
            self._refreshing = None
        self.pump()

    # -- the end

    async def close(self, timeout_s: float, *, sends: bool = True) -> None:
        """Send acknowledgements and close the sessions, within `timeout_s` seconds.

        When a session ends, the broker releases all records that are not acknowledged.
        """
        deadline = self._loop.time() + timeout_s
        if sends:
            for decision in self._holdings.decisions():
                self._route(decision)
        self._is_closing = True
        self._arm(float("inf"))
        if self._exchanges:
            await asyncio.wait(self._exchanges.values(), timeout=max(0.0, deadline - self._loop.time()))
        farewells = [
            self._loop.create_task(self._close_session(node_id, session))
            for node_id, session in self._sessions.items()
            if sends and node_id not in self._exchanges
        ]
        if farewells:
            await asyncio.wait(farewells, timeout=max(0.0, deadline - self._loop.time()))
        tasks = [*farewells, *self._exchanges.values(), *([self._refreshing] if self._refreshing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in self._sessions.values():
            session.drop(lambda group: RequestTimeoutError(f"no answer about {group.tp} in time"))
        self._sessions.clear()
        self.announce()

    async def _close_session(self, node_id: int, session: ShareMemberSession) -> None:
        request = session.acknowledgements(self._loop.time(), is_final=True)
        if request is None:
            return
        try:
            answer, _ = await self._ask(node_id, request)
            session.answered(answer, self._loop.time())
        except PenstockError as error:
            session.failed(error)


def acquired_runs(data: PartitionData, tp: TopicPartition, broker: object) -> list[ValueRun]:
    """Return the acquired offsets of a partition in a response as ascending runs of delivery counts.

    Raises:
        DecodeError: the offsets are not valid ranges, or too many.
    """
    if len(data.acquired_records) > ACQUIRED_RANGES_MAX:
        raise DecodeError(
            f"broker {broker} gave {len(data.acquired_records)} acquired ranges of {tp}; "
            f"{ACQUIRED_RANGES_MAX} are taken at most"
        )
    acquired = RunMap()
    for each in data.acquired_records:
        if not 0 <= each.first_offset <= each.last_offset:
            raise DecodeError(
                f"broker {broker} gave {tp} as acquired from {each.first_offset} to {each.last_offset}"
            )
        acquired.put(each.first_offset, each.last_offset, each.delivery_count)
    return list(acquired)
