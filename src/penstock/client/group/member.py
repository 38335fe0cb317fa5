"""The driver of a group member: sends the requests of its state machine, sets timers, refreshes metadata.

A driver belongs to one event loop, and works in the background of the application. Every request that it
takes from the state machine gets exactly one outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.client.group.coordinator import CoordinatorFinder
from penstock.client.group.requests import (
    CountPartitions,
    FindGroupCoordinator,
    NameTopics,
    Outgoing,
    is_farewell,
)
from penstock.client.group.state_machine import Driven, Phase
from penstock.common.logs import logger_named
from penstock.errors import DecodeError, NetworkError, PenstockError, RequestTimeoutError
from penstock.protocol.error_codes import error_for

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient

LEAVE_PATIENCE_S = 2.0
"""The time in seconds that `close` waits for the response to LeaveGroup."""

MISSING_TOPIC_S = 2.0
"""The interval in seconds between refreshes of metadata while a subscribed topic does not exist."""

COMPLAIN_AFTER_S = 5.0
COMPLAIN_EVERY_S = 60.0
"""The interval in seconds between log messages about failures that are retried."""

log = logger_named("penstock.client.group")

M = TypeVar("M", bound=Driven)


class MembershipDriver(Generic[M]):
    """Sends one membership's requests, and sets its timers.

    Calls `on_change` when the application must act.
    """

    def __init__(
        self,
        client: AsyncClient,
        coordinator: CoordinatorFinder,
        membership: M,
        *,
        on_change: Callable[[], None],
        is_alive: Callable[[], bool],
        topics_wanted: Callable[[], list[str] | None],
    ) -> None:
        self.membership = membership
        self._client = client
        self._coordinator = coordinator
        self._on_change = on_change
        self._is_alive = is_alive
        """A function that returns True if the application has taken records since the last call."""
        self._topics_wanted = topics_wanted
        """A function that returns the topics in fresh metadata that match the client's pattern; None without
        such a pattern.
        """
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], Outgoing] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._warned: set[str] = set()
        self._failing_since = 0.0
        self._complain_at = 0.0
        membership.name_of = lambda node: "unknown" if node is None else client.address_of(node)
        self._phase = membership.phase

    @property
    def now(self) -> float:
        """The time of the event loop's clock in milliseconds."""
        return self._loop.time() * 1000

    def pump(self) -> None:
        """Send the requests in the outbox, and set the timer for the next one."""
        membership = self.membership
        while membership.outbox:
            waiting = membership.take_requests()
            for outgoing in waiting:
                task = self._loop.create_task(self._ask(outgoing))
                self._tasks[task] = outgoing
                task.add_done_callback(lambda done: self._tasks.pop(done, None))
        if self._watching is None and membership.phase is not Phase.OUT:
            self._watching = self._loop.create_task(self._watch_topics())
        self._arm(membership.wake_at)
        if membership.phase is not self._phase:
            self._phase = membership.phase
            log.debug("group %s: %s", membership.settings.group_id, membership.phase.value)
        self._on_change()

    def _arm(self, wake_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at < float("inf"):
            self._timer = self._loop.call_at(wake_at / 1000, self._tick)

    def _tick(self) -> None:
        if self._is_alive():
            self.membership.polled(self.now)
        self.membership.advance(self.now)
        self.pump()

    async def _ask(self, outgoing: Outgoing) -> None:
        outcome: object
        try:
            async with asyncio.timeout(outgoing.timeout_ms / 1000):
                outcome = await self._perform(outgoing)
        except PenstockError as error:
            outcome = error
            self._client.troubles.note("group", error)
            if isinstance(error, (NetworkError, RequestTimeoutError)):
                self._coordinator.forget(outgoing.node)
        except TimeoutError:
            outcome = RequestTimeoutError(f"no answer within {outgoing.timeout_ms / 1000:g} s")
        except Exception as error:
            # Without an outcome the member would wait for it for ever.
            log.exception("a request of a group member has failed")
            outcome = DecodeError(f"a request of a group member has failed: {error!r}")
        self._note(outcome)
        self.membership.answered(outgoing.ticket, outcome, self.now)
        self.pump()

    def _note(self, outcome: object) -> None:
        """Log a warning if requests have failed for some seconds without a success, at most once a minute."""
        code = getattr(outcome, "error_code", 0)
        trouble = error_for(code, "the coordinator's answer") if code else outcome
        if not isinstance(trouble, PenstockError):
            if self.membership.phase is Phase.STABLE:
                self._failing_since = 0.0
            return
        now_s = self._loop.time()
        self._failing_since = self._failing_since or now_s
        since_s = now_s - self._failing_since
        if since_s >= COMPLAIN_AFTER_S and now_s >= self._complain_at:
            self._complain_at = now_s + COMPLAIN_EVERY_S
            group_id = self.membership.settings.group_id
            log.warning("group %s: no success for %.0f s, trying on: %s", group_id, since_s, trouble)

    async def _perform(self, outgoing: Outgoing) -> Any:
        call = outgoing.call
        if isinstance(call, FindGroupCoordinator):
            node = await self._coordinator.find()
            self.membership.timeouts.has_rebalance_timeout = self._coordinator.has_rebalance_timeout
            return node
        if isinstance(call, CountPartitions):
            await self._client.refresh(call.topics)
            return self._counts()
        if isinstance(call, NameTopics):
            return await self._names(call.topic_ids)
        assert outgoing.node is not None
        return await self._coordinator.request(call, outgoing.node, outgoing.timeout_ms / 1000)

    async def _names(self, topic_ids: Iterable[bytes]) -> dict[bytes, str]:
        """Return the names of topic ids, without ids that are not known; refresh the metadata for these."""
        cluster = self._client.cluster
        if any(cluster.name_of(topic_id) is None for topic_id in topic_ids):
            # A regular expression at the broker may find topics of any name.
            topics = self.membership.group_topics
            await self._client.refresh(topics, all_topics=not topics)
        found = {topic_id: cluster.name_of(topic_id) for topic_id in topic_ids}
        return {topic_id: name for topic_id, name in found.items() if name is not None}

    def _counts(self) -> dict[str, int]:
        topics = self._client.cluster.topics
        return {name: len(topics[name].partitions) for name in self.membership.group_topics if name in topics}

    # -- topics

    async def _watch_topics(self) -> None:
        """Refresh the metadata of the subscribed topics regularly, to find new partitions and topics."""
        while True:
            is_missing = self._warn_of_missing()
            age_s = self._client.config.metadata_max_age_ms / 1000
            await asyncio.sleep(min(age_s, MISSING_TOPIC_S) if is_missing else age_s)
            wanted = self._topics_wanted()
            try:
                await self._client.refresh(self.membership.group_topics, all_topics=wanted is not None)
            except PenstockError as error:
                log.debug("looking at topics: %s", error)
                continue
            wanted = self._topics_wanted()
            if wanted is not None:
                self.membership.subscribe(wanted, self.now)
            self.membership.counted(self._counts(), self.now)
            self.pump()

    def _warn_of_missing(self) -> bool:
        """Log a warning, once per topic, for subscribed topics that do not exist; return True if any."""
        cluster = self._client.cluster
        if self.membership.phase not in (Phase.STABLE, Phase.SYNCING):
            return True
        missing = [name for name in self.membership.topics if not cluster.partitions_of(name)]
        for name in missing:
            if name not in self._warned:
                self._warned.add(name)
                log.warning(
                    "group %s: topic %r does not exist%s; waiting for it",
                    self.membership.settings.group_id,
                    name,
                    cluster.unknown_topic_hint(name),
                )
        return bool(missing)

    # -- the end

    async def close(self) -> None:
        """Wait a short time for the response to the LeaveGroup request, then stop."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        deadline = self._loop.time() + LEAVE_PATIENCE_S
        while farewells := [task for task, out in self._tasks.items() if is_farewell(out.call)]:
            if self._loop.time() >= deadline:
                break
            await asyncio.wait(farewells, timeout=deadline - self._loop.time())
        everything = [*self._tasks, *([self._watching] if self._watching else [])]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
