"""Injects the planned faults of a run into a broker or a cluster, and removes them again.

Faults of a connection or an answer are those of `penstock.broker.faults.faults`. Faults of a whole broker
(expelled members, a jump of the clock) happen in the broker's thread, before the planned request is handled.
A separate thread moves leaders and coordinators of a cluster, and restarts brokers, right after the planned
request.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.broker.cluster import KafkaCluster
from penstock.broker.faults.faults import Fault, Faults
from penstock.broker.groups.consumer.group import Heartbeat
from penstock.errors import PenstockError
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.testing.report import nodes_of

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.faults.requests import Request
    from penstock.broker.node import Node
    from penstock.testing.chaos.plan import Plan, PlannedFault

HAND_PATIENCE_S = 10.0
"""The longest wait, in seconds, until leader moves and broker restarts in progress end after a run."""


class Armed:
    """Keeps the faults of one `Plan` in force at a broker or cluster until `disarm` is called."""

    def __init__(self, served: KafkaBroker | KafkaCluster, plan: Plan) -> None:
        self._served = served
        self._hand = Hand()
        self._faults: list[tuple[int, Fault]] = []
        for number, planned in zip(plan.numbers, plan.faults, strict=True):
            self._faults.append((number, self._arm(planned)))
        self._own = tuple(fault for _, fault in self._faults)

    @property
    def happened(self) -> tuple[int, ...]:
        """Return the numbers of the planned faults that have happened; the plan's first fault is 1."""
        return tuple(number for number, fault in self._faults if fault.count)

    def pause(self) -> None:
        """Suspend all faults, and count no requests, until `resume` is called."""
        for fault in self._own:
            self._served.faults.remove(fault)

    def resume(self) -> None:
        """Put the faults that `pause` suspended back into force."""
        faults = self._served.faults
        with faults.changed:
            faults.active = (*faults.active, *(each for each in self._own if each not in faults.active))

    def disarm(self) -> None:
        """Remove the faults, and wait for leader moves and broker restarts that have begun."""
        self.pause()
        self._hand.stop()

    def _arm(self, planned: PlannedFault) -> Fault:
        faults, api = self._served.faults, planned.api
        skip, times = planned.skip, planned.times
        match planned.kind:
            case "lost_answers":
                return faults.close(api, applied=True, skip=skip, times=times)
            case "lost_requests":
                return faults.close(api, skip=skip, times=times)
            case "cut_answers":
                return faults.corrupt(api, "cut", skip=skip, times=times)
            case "silence":
                return faults.drop(api, applied=True, skip=skip, times=times)
            case "errors" | "refusals":
                return faults.fail(api, planned.detail, skip=skip, times=times)
            case "delays":
                return faults.delay(api, int(planned.detail) / 1000, skip=skip, times=times)
            case "slow_disks":
                seconds = int(planned.detail) / 1000
                return faults.delay(api, seconds, applied=False, skip=skip, times=times)
            case "leaders_move":
                return self._leaders_move(faults, planned)
            case "coordinators_move":
                return self._coordinators_move(faults, planned)
            case "rebalances":
                return self._at(planned, lambda request: self._expel())
            case "clocks":
                return self._at(planned, lambda request: self._jump(int(planned.detail)))
            case _:
                return self._at(planned, lambda request: self._hand.do(self._restart))

    def _at(self, planned: PlannedFault, act: Callable[[Request], None]) -> Fault:
        """Register a fault that calls `act` in the broker's thread when the planned request arrives."""
        trigger = Trigger(planned.skip, planned.times, act)
        return self._served.faults.watch(planned.api, when=trigger, times=planned.times)

    def _leaders_move(self, faults: Faults, planned: PlannedFault) -> Fault:
        served = self._served
        if not isinstance(served, KafkaCluster):
            return faults.fail(planned.api, "NOT_LEADER_OR_FOLLOWER", skip=planned.skip, times=planned.times)

        def move(request: Request) -> None:
            if request.partitions:
                self._hand.do(partial(served.move_leader, *request.partitions[0]))

        return self._at(planned, move)

    def _coordinators_move(self, faults: Faults, planned: PlannedFault) -> Fault:
        served = self._served
        if not isinstance(served, KafkaCluster):
            return faults.fail(planned.api, "NOT_COORDINATOR", skip=planned.skip, times=planned.times)

        def move(request: Request) -> None:
            name = getattr(request.message, "transactional_id", None)
            if request.groups:
                self._hand.do(partial(served.move_coordinator, group=request.groups[0]))
            elif name:
                self._hand.do(partial(served.move_coordinator, transactional_id=name))

        return self._at(planned, move)

    def _expel(self) -> None:
        for node in nodes_of(self._served):
            expel_members(node)

    def _jump(self, ms: int) -> None:
        served = self._served
        if isinstance(served, KafkaCluster):
            self._hand.do(lambda: served.advance(ms=ms))
        else:
            served.advance(ms=ms)

    def _restart(self) -> None:
        served = self._served
        if isinstance(served, KafkaCluster):
            served.restart(served.node_ids[0], kill=True)
        elif served.is_running:
            served.restart(kill=True)


class Trigger:
    """Triggers a fault: skips `skip` requests, then calls `act` for each of the next `times` requests."""

    def __init__(self, skip: int, times: int, act: Callable[[Request], None]) -> None:
        self._skip = skip
        self._times = times
        self._act = act

    def __call__(self, request: Request) -> bool:
        """Return True, after calling `act`, if the fault is due at this request; return False otherwise."""
        if self._skip > 0:
            self._skip -= 1
            return False
        if self._times <= 0:
            return False
        self._times -= 1
        self._act(request)
        return True


class Hand:
    """A thread that moves leaders and restarts brokers one by one, since a broker's thread must not block."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def do(self, lever: Callable[[], object]) -> None:
        """Queue a task. Errors of the task are ignored, since its group or replica may not exist."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock-chaos", daemon=True)
            self._thread.start()
        self._work.put(lever)

    def stop(self) -> None:
        """Wait until all queued tasks are done, and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._work.put(None)
            thread.join(HAND_PATIENCE_S)

    def _run(self) -> None:
        while (lever := self._work.get()) is not None:
            # No such group yet, no replica in sync to lead: the moment has passed without effect.
            with contextlib.suppress(PenstockError, KeyError, IndexError):
                lever()


def expel_members(node: Node) -> None:
    """Remove the members of all groups coordinated by a node, as if their sessions had expired.

    Call it in the node's thread.
    """
    service = node.groups_if_used
    if service is None:
        return
    now = node.clock.monotonic()
    for group_id, group in list(service.coordinator.groups.items()):
        members: list[Any] = [MemberIdentity(member_id=each) for each in group.members]
        if members:
            service.leave(LeaveGroupRequest(group_id=group_id), members, now)
    for group_id, newer in list(service.consumer.groups.items()):
        for member_id in list(newer.stored.subscriptions):
            with contextlib.suppress(PenstockError):
                service.heartbeat(group_id, Heartbeat(member_id, -1), lambda topic: True, now)
