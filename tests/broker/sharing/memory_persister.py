"""An in-memory share coordinator for tests of partition leaders: it answers at once, late, or with errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.broker.sharing.persister import ReadDone, WriteDone
from penstock.protocol.messages import read_share_group_state_response as reads
from penstock.protocol.messages import write_share_group_state_response as writes
from penstock.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
from penstock.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest

Key = tuple[str, bytes, int]


class State:
    """The stored state of one share partition."""

    def __init__(self, start_offset: int = -1, state_epoch: int = 1) -> None:
        self.start_offset = start_offset
        self.state_epoch = state_epoch
        self.leader_epoch = 0
        self.done_count = -1
        self.offsets: dict[int, tuple[int, int]] = {}
        """A dict from offset to delivery count and state."""


class MemoryPersister:
    """An in-memory `SharePersister` for tests of partition leaders.

    Every group has a state for every partition, unless `knows_all` is False.
    """

    def __init__(self) -> None:
        self.states: dict[Key, State] = {}
        self.knows_all = True
        self.error_code = 0
        """The error code with which every call is answered instead of being executed; 0 for none."""
        self.held: list[Callable[[], None]] | None = None
        """The calls without an answer yet, as functions that answer them.

        None to answer every call at once.
        """
        self.writes: list[Any] = []

    def read_state(self, request: ReadShareGroupStateRequest, done: ReadDone) -> None:
        topic = request.topics[0]
        asked = topic.partitions[0]
        result = reads.PartitionResult(partition=asked.partition, error_code=self.error_code)
        state = self._find((request.group_id, topic.topic_id, asked.partition))
        if state is None:
            result.error_code = result.error_code or 42
        elif not self.error_code:
            if asked.leader_epoch < state.leader_epoch:
                result.error_code = 74
            else:
                state.leader_epoch = asked.leader_epoch
                result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
                result.state_batches = [
                    reads.StateBatch(
                        first_offset=offset, last_offset=offset, delivery_count=count, delivery_state=kind
                    )
                    for offset, (count, kind) in sorted(state.offsets.items())
                ]
        answer = reads.ReadShareGroupStateResponse(
            results=[reads.ReadStateResult(topic_id=topic.topic_id, partitions=[result])]
        )
        self._answer(lambda: done(answer))

    def write_state(self, request: WriteShareGroupStateRequest, done: WriteDone) -> None:
        topic = request.topics[0]
        asked = topic.partitions[0]
        self.writes.append(asked)
        code = self.error_code or self._write((request.group_id, topic.topic_id, asked.partition), asked)
        result = writes.PartitionResult(partition=asked.partition, error_code=code)
        answer = writes.WriteShareGroupStateResponse(
            results=[writes.WriteStateResult(topic_id=topic.topic_id, partitions=[result])]
        )
        self._answer(lambda: done(answer))

    def answer_held(self) -> None:
        """Give all held answers; calls that these cause are answered at once."""
        held, self.held = self.held or [], None
        for each in held:
            each()

    def _answer(self, done: Callable[[], None]) -> None:
        if self.held is None:
            done()
        else:
            self.held.append(done)

    def _find(self, key: Key) -> State | None:
        if key not in self.states and self.knows_all:
            self.states[key] = State()
        return self.states.get(key)

    def _write(self, key: Key, asked: Any) -> int:
        state = self._find(key)
        if state is None:
            return 42
        if asked.leader_epoch < state.leader_epoch:
            return 74
        if asked.state_epoch < state.state_epoch:
            return 124
        state.start_offset = max(state.start_offset, asked.start_offset)
        state.done_count = asked.delivery_complete_count
        for each in asked.state_batches:
            for offset in range(each.first_offset, each.last_offset + 1):
                new = each.delivery_count, each.delivery_state
                state.offsets[offset] = max(state.offsets.get(offset, (0, 0)), new)
        state.offsets = {key: each for key, each in state.offsets.items() if key >= state.start_offset}
        return 0
