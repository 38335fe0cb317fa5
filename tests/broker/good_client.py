"""A well-behaved client, which tests run beside clients that break the rules.

It produces, polls, waits for deadlines and is a member of a group, each in one thread. Faults of other
clients must not affect it. Each thread stores its first error and counts its rounds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from broker.bench_node import batch_of, produce_request
from broker.groups.requests import heartbeat_request, join_request, sync_request
from broker.wire_client import WireClient
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

ROUND_S = 0.01
POLL_MS = 10
SESSION_MS = 600_000
"""A session timeout in milliseconds, long enough that it does not expire on a busy machine."""
PATIENCE_S = 60.0


def fetch_request(topic: str, offset: int, wait_ms: int, bytes_max: int = 1 << 20) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=bytes_max,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


class GoodClient:
    """A well-behaved client, used to check that faults of other clients do not affect it.

    From `start` to `stop` it uses the topics ``good`` and ``quiet`` and the group ``good``.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._stopping = threading.Event()
        self.errors: list[BaseException] = []
        self.rounds = {"produce": 0, "poll": 0, "deadline": 0, "group": 0}
        self.acknowledged = 0
        self._threads = [
            threading.Thread(target=self._run, args=(name, work), daemon=True)
            for name, work in (
                ("produce", self._produce),
                ("poll", self._poll),
                ("deadline", self._await_deadlines),
                ("group", self._belong),
            )
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in self._threads)

    def is_well(self) -> None:
        """Wait until every thread has done two more rounds.

        Raises:
            AssertionError: a thread has met an error, or makes no progress.
        """
        before = dict(self.rounds)
        deadline = time.monotonic() + PATIENCE_S
        while any(self.rounds[name] < before[name] + 2 for name in before):
            self._raise_first()
            assert time.monotonic() < deadline, f"{before} has become {self.rounds}"
            time.sleep(0.005)
        self._raise_first()

    def _raise_first(self) -> None:
        if self.errors:
            raise AssertionError(f"the good client has noticed {self.errors!r}") from self.errors[0]

    # --- what it does ------------------------------------------------------------------------------------

    def _run(self, name: str, work: Callable[[WireClient], Callable[[], object]]) -> None:
        try:
            with WireClient(self._port, PATIENCE_S, "good") as client:
                once = work(client)
                while not self._stopping.is_set():
                    if once() is not False:
                        self.rounds[name] += 1
                    self._stopping.wait(ROUND_S)
        except BaseException as error:
            error.add_note(f"met by {name} in round {self.rounds[name]}")
            self.errors.append(error)

    def _produce(self, client: WireClient) -> Callable[[], None]:
        def once() -> None:
            answer = client.ask(produce_request(batch_of(b"value"), topic="good"), 9)
            [partition] = answer.responses[0].partition_responses
            assert partition.error_code == 0, partition
            assert partition.base_offset == self.acknowledged
            self.acknowledged += 1

        return once

    def _poll(self, client: WireClient) -> Callable[[], bool]:
        offset = 0

        def once() -> bool:
            nonlocal offset
            [partition] = client.ask(fetch_request("good", offset, 5_000), 12).responses[0].partitions
            assert partition.error_code == 0, partition
            position, data = 0, bytes(partition.records or b"")
            while position + 61 <= len(data):
                assert int.from_bytes(data[position : position + 8], "big") == offset
                position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
                offset += 1
            return bool(data)  # a round is one in which the producer was heard of

        return once

    def _await_deadlines(self, client: WireClient) -> Callable[[], None]:
        def once() -> None:
            [partition] = client.ask(fetch_request("quiet", 0, POLL_MS), 12).responses[0].partitions
            assert (partition.error_code, bytes(partition.records or b"")) == (0, b"")

        return once

    def _belong(self, client: WireClient) -> Callable[[], None]:
        given: Any = client.ask(join_request(group="good", session_timeout_ms=SESSION_MS), 5)
        assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined: Any = client.ask(
            join_request(given.member_id, group="good", session_timeout_ms=SESSION_MS), 5
        )
        assert joined.error_code == 0
        member, generation = joined.member_id, joined.generation_id
        synced = client.ask(sync_request(member, generation, {member: b"all"}, group="good"), 3)
        assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")

        def once() -> None:
            assert client.ask(heartbeat_request(member, generation, group="good"), 3).error_code == 0

        return once
