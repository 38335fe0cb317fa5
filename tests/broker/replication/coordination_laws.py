"""The clients of the simulated cluster with coordinators, and the invariants about their answers.

* Records that readers with `read_committed` have seen never change; readers see all of a committed
  transaction and nothing of an aborted one; no transaction stays open.
* The sequence numbers of a producer's epoch have no gaps and no duplicates.
* In one generation of a group no partition has two owners.
* Acknowledged offsets of a group never go back; offsets in a transaction count only if it was committed.
"""

from __future__ import annotations

import itertools
from typing import Any

from broker.replication.coordination import OUT, PARTITIONS, CoordinatedNode, CoordinatedWorld, Script
from broker.replication.simulation import value_of
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.end_txn_request import EndTxnRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.records.batch import ABORT_MARKER, encode_batch, read_marker
from penstock.records.format.batch_header import BatchHeader, read_header

GROUP, MEMBERS, PRODUCERS = "g", 3, 2
TIMEOUT_MS = 3000
"""The `transaction.timeout.ms` of the producers."""

AGAIN = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
"""The error codes after which a client sends the request again."""

REST_MS = 25


class Transaction:
    """One transaction of a producer: the records that it has written, and its outcome."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: list[tuple[int, bytes]] = []
        self.has_offset = False
        self.may_commit = False
        """True if the producer has asked for a commit."""
        self.is_committed = False
        """True if the commit was acknowledged."""


class Laws:
    """The clients of a simulated cluster, the answers that they got, and the checks of the invariants."""

    def __init__(self, world: CoordinatedWorld) -> None:
        self.world = world
        self.is_ending = False
        self.transactions: dict[str, list[Transaction]] = {}
        self._owners: dict[tuple[int, int], str] = {}
        self._floors = dict.fromkeys(range(PARTITIONS), -1)
        self._seen: dict[int, dict[int, bytes]] = {each: {} for each in range(PARTITIONS)}
        self._seen_to = dict.fromkeys(range(PARTITIONS), 0)
        self._ids = itertools.count(1)

    def begin(self) -> None:
        """Start all clients: producers, group members and a reader."""
        for number in range(PRODUCERS):
            self.world.add(f"x{number}", self._produce(f"x{number}"))
        for number in range(MEMBERS):
            self.world.add(f"m{number}", self._consume(f"m{number}"))
        self.world.add("reader", self._read())

    def end_soon(self) -> None:
        """Let clients finish what they are doing and start nothing new."""
        self.is_ending = True

    def new_member_id(self, name: str) -> str:
        """Return a member id from a counter, so that a seed always gives the same ids."""
        return f"{name}-{next(self._ids)}"

    def fail(self, law: str) -> None:
        self.world._checker.fail(law)

    # --- producers ---------------------------------------------------------------------------------------

    def _produce(self, name: str) -> Script:
        world, random = self.world, self.world.random
        mine = self.transactions.setdefault(name, [])
        producer: tuple[int, int] | None = None
        while not self.is_ending:
            yield random.randint(1, 80)
            if producer is None:
                begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
                answer = yield world.coordinator(TRANSACTIONS_TOPIC, name), begin, 5
                if answer is None or answer.error_code:
                    yield REST_MS
                    continue
                producer = answer.producer_id, answer.producer_epoch
                world.tell(f"{name} is producer {producer}")
            transaction = Transaction(len(mine))
            mine.append(transaction)
            is_well = yield from self._write(name, producer, transaction)
            if is_well and random.random() < 0.5:
                is_well = yield from self._store_offset(name, producer, transaction)
            commits = random.random() < 0.75
            transaction.may_commit = is_well and commits
            producer = (yield from self._end(name, producer, commits)) if is_well else None
            transaction.is_committed = transaction.may_commit and producer is not None
            world.tell(
                f"{name} has ended {transaction.number}: {transaction.may_commit}, {transaction.is_committed}"
            )

    def _write(self, name: str, producer: tuple[int, int], transaction: Transaction) -> Script:
        random = self.world.random
        for index in random.sample(range(PARTITIONS), random.randint(1, PARTITIONS)):
            for sequence in range(random.randint(1, 2)):
                value = f"{name}:{transaction.number}:{len(transaction.values)}".encode()
                transaction.values.append((index, value))
                batch = encode_batch(
                    [(None, value, (), 1)],
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    base_sequence=sequence,
                    is_transactional=True,
                )

                def request(batch: bytes = batch, index: int = index) -> ProduceRequest:
                    data = PartitionProduceData(index=index, records=memoryview(bytearray(batch)))
                    topic = TopicProduceData(name=OUT, partition_data=[data])
                    return ProduceRequest(transactional_id=name, acks=-1, timeout_ms=600, topic_data=[topic])

                while True:
                    answer = yield self.world.leader(OUT, index), request(), 12
                    code = None if answer is None else answer.responses[0].partition_responses[0].error_code
                    if code in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                        break
                    if code is not None and code not in AGAIN:
                        self.world.tell(f"{name} cannot write {value!r}: {code}")
                        return False  # type: ignore[return-value]
                    yield REST_MS
        return True  # type: ignore[return-value]

    def _store_offset(self, name: str, producer: tuple[int, int], transaction: Transaction) -> Script:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=transaction.number)
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=f"of-{name}",
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id_or_member_epoch=-1,
            topics=[TxnOffsetCommitRequestTopic(name=OUT, partitions=[partition])],
        )
        transaction.has_offset = True
        while True:
            answer = yield self.world.coordinator(OFFSETS_TOPIC, request.group_id), request, 5
            code = None if answer is None else answer.topics[0].partitions[0].error_code
            if code == 0:
                return True  # type: ignore[return-value]
            if code is not None and code not in AGAIN:
                self.world.tell(f"{name} cannot store an offset: {code}")
                return False  # type: ignore[return-value]
            yield REST_MS

    def _end(self, name: str, producer: tuple[int, int], commits: bool) -> Script:
        """End a transaction; return the producer id and epoch for the next one.

        Returns None if an error leaves the outcome unknown.
        """
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=commits
        )
        while True:
            answer = yield self.world.coordinator(TRANSACTIONS_TOPIC, name), request, 5
            if answer is not None and not answer.error_code:
                return answer.producer_id, answer.producer_epoch  # type: ignore[return-value]
            if answer is not None and answer.error_code not in AGAIN:
                self.world.tell(f"{name} cannot end {producer}: {answer.error_code}")
                return None
            yield REST_MS

    # --- members of a group ------------------------------------------------------------------------------

    def _consume(self, name: str) -> Script:
        world, random = self.world, self.world.random
        member_id = ""
        while not self.is_ending:
            node = world.coordinator(OFFSETS_TOPIC, GROUP)
            protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
            join = JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=600,
                rebalance_timeout_ms=800,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[protocol],
            )
            joined = yield node, join, 5
            code = None if joined is None else joined.error_code
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                member_id = joined.member_id
                continue
            if code:
                member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else member_id
            if code != 0:
                yield REST_MS
                continue
            member_id, generation = joined.member_id, joined.generation_id
            assignments = []
            if joined.leader == member_id:
                members = [each.member_id for each in joined.members]
                random.shuffle(members)
                shares: dict[str, list[str]] = {each: [] for each in members}
                for index in range(PARTITIONS):
                    shares[members[index % len(members)]].append(str(index))
                assignments = [
                    SyncGroupRequestAssignment(member_id=each, assignment=",".join(share).encode())
                    for each, share in shares.items()
                ]
            sync = SyncGroupRequest(
                group_id=GROUP,
                generation_id=generation,
                member_id=member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            )
            synced = yield node, sync, 5
            if synced is None or synced.error_code:
                if synced is not None and synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    member_id = ""
                yield REST_MS
                continue
            owned = [int(each) for each in synced.assignment.decode().split(",") if each]
            for index in owned:
                if self._owners.setdefault((generation, index), member_id) != member_id:
                    self.fail(f"partition {index} has two owners in generation {generation}")
            world.tell(f"{name} owns {owned} in generation {generation}")
            code = yield from self._work(name, node, member_id, generation, owned)
            member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else member_id

    def _work(self, name: str, node: int, member_id: str, generation: int, owned: list[int]) -> Script:
        """Commit offsets of the owned partitions, one after the other, until the group rebalances.

        Returns the error code that ended the loop.
        """
        world = self.world
        positions: dict[int, int] = {}
        for index in owned:
            fetch = OffsetFetchRequest(
                group_id=GROUP, topics=[OffsetFetchRequestTopic(name=OUT, partition_indexes=[index])]
            )
            answer = yield node, fetch, 7
            if answer is None or answer.error_code:
                return ErrorCode.NOT_COORDINATOR  # type: ignore[return-value]
            positions[index] = answer.topics[0].partitions[0].committed_offset
        while not self.is_ending:
            for index in owned:
                partition = OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=positions[index] + 1
                )
                commit = OffsetCommitRequest(
                    group_id=GROUP,
                    generation_id_or_member_epoch=generation,
                    member_id=member_id,
                    topics=[OffsetCommitRequestTopic(name=OUT, partitions=[partition])],
                )
                answer = yield node, commit, 8
                code = None if answer is None else answer.topics[0].partitions[0].error_code
                if code:
                    return code  # type: ignore[no-any-return]
                if code is None:  # the next try asks for the same offset
                    node = world.coordinator(OFFSETS_TOPIC, GROUP)
                    continue
                positions[index] += 1
                if positions[index] < self._floors[index]:
                    self.fail(f"{name} commits {positions[index]} after {self._floors[index]}")
                self._floors[index] = positions[index]
            beat = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
            answer = yield node, beat, 3
            if answer is not None and answer.error_code:
                code = answer.error_code
                return code  # type: ignore[no-any-return]
            yield world.random.randint(20, 120)
        return 0  # type: ignore[return-value]

    # --- readers -----------------------------------------------------------------------------------------

    def _read(self) -> Script:
        """Read committed records, from the leader or from any replica."""
        world = self.world
        while not self.is_ending:
            index = world.random.randrange(PARTITIONS)
            node = world.leader(OUT, index) if world.random.random() < 0.5 else world.random.choice((1, 2, 3))
            answer = yield node, fetch_of(index), 12
            if answer is not None:
                found = answer.responses[0].partitions[0]
                if not found.error_code:
                    self._look(index, node, found)
            yield world.random.randint(50, 300)

    def _look(self, index: int, node: int, found: Any) -> None:
        view = dict(visible(found))
        common = min(found.last_stable_offset, self._seen_to[index])
        seen = self._seen[index]
        for offset in range(common):
            if view.get(offset) != seen.get(offset):
                self.fail(
                    f"node {node} gives {view.get(offset)!r} at {OUT}-{index} offset {offset}, "
                    f"where {seen.get(offset)!r} was read before"
                )
        if found.last_stable_offset > self._seen_to[index]:
            self._seen[index], self._seen_to[index] = view, found.last_stable_offset

    # --- the end -----------------------------------------------------------------------------------------

    def check_end(self) -> None:
        """Check the final state after a quiet period.

        Transactions that were left open have timed out by then.
        """
        world = self.world
        world.run(world.uptime_ms + TIMEOUT_MS + 2000)
        seen: set[tuple[int, bytes]] = set()
        for index, node in world.leading.items():
            assert node is not None
            answers: list[Any] = []
            node.handle(fetch_of(index), 12, 0, answers.append)
            found = answers[0].responses[0].partitions[0]
            if found.last_stable_offset != found.high_watermark:
                self.fail(
                    f"{OUT}-{index} has a transaction open: stable up to {found.last_stable_offset} "
                    f"of {found.high_watermark}; {self._logs(index)}"
                )
            self._look(index, node.id, found)
            values = [(index, value) for _, value in visible(found)]
            if len(values) != len(set(values)):
                self.fail(f"records of {OUT}-{index} are there twice: {values}")
            seen.update(values)
            self._check_sequences(index, node)
        for name, transactions in self.transactions.items():
            for each in transactions:
                present = [value in seen for value in each.values]
                if each.is_committed and not all(present):
                    self.fail(
                        f"{name} has committed {each.number}, of which {each.values} {present} is there"
                    )
                if any(present) and not each.may_commit:
                    self.fail(f"{name} has aborted {each.number}, of which {each.values} {present} is there")
                if any(present) != all(present):
                    self.fail(f"{name} has half of {each.number}: {each.values} {present}")
            self._check_offset(name, [each for each in transactions if each.has_offset])
        for index in range(PARTITIONS):
            offset = self._offset(GROUP, index)
            if offset < self._floors[index]:
                self.fail(
                    f"offset {self._floors[index]} of partition {index} was committed; now it is {offset}"
                )

    def _check_sequences(self, index: int, node: CoordinatedNode) -> None:
        following: dict[tuple[int, int], int] = {}
        for header, _ in batches_of(node, index):
            if header.is_control:
                continue
            producer = header.producer_id, header.producer_epoch
            if header.base_sequence != following.get(producer, 0):
                self.fail(f"producer {producer} has sequence {header.base_sequence} in {OUT}-{index}")
            following[producer] = header.base_sequence + 1

    def _check_offset(self, name: str, transactions: list[Transaction]) -> None:
        sure = max((each.number for each in transactions if each.is_committed), default=-1)
        possible = {each.number for each in transactions if each.may_commit and each.number > sure}
        offset = self._offset(f"of-{name}", 0)
        if offset not in {sure, *possible}:
            self.fail(f"{name} has stored offset {offset}; it is one of {sorted({sure, *possible})}")

    def _offset(self, group: str, index: int) -> int:
        """Return the committed offset of a group for a partition, from its coordinator."""
        world = self.world
        request = OffsetFetchRequest(
            group_id=group, topics=[OffsetFetchRequestTopic(name=OUT, partition_indexes=[index])]
        )
        answers: list[Any] = []

        def ask() -> Script:
            while not answers:
                answer = yield world.coordinator(OFFSETS_TOPIC, group), request, 7
                if answer is not None and not answer.error_code:
                    answers.append(answer.topics[0].partitions[0])
                yield REST_MS

        world.add("end", ask())
        deadline = world.uptime_ms + 10_000
        while not answers:
            if world.uptime_ms > deadline:
                self.fail(f"group {group} has no coordinator")
            world.run(world.uptime_ms + 100)
        offset: int = answers[0].committed_offset
        return offset

    def _logs(self, index: int) -> str:
        lines = []
        for node in self.world.nodes.values():
            assert isinstance(node, CoordinatedNode)
            batches = [
                f"{each.base_offset}:{each.producer_id}/{each.producer_epoch}"
                f"{'M' if each.is_control else ''} {value!r}"
                for each, value in batches_of(node, index)
            ]
            states = {
                one.id: (one.state.name, sorted(one.image.partitions))
                for one in node.node.transactions.coordinator.registry.transactions.values()
            }
            lines.append(f"{node.id}: {batches[-8:]} {states}")
        return "\n".join(lines)


def batches_of(node: CoordinatedNode, index: int) -> list[tuple[BatchHeader, bytes]]:
    """Return the batches in a node's log of a partition, each with the value of its only record."""
    from broker.replication.coordination import TOPICS

    log = node.store._logs.get((TOPICS[OUT], index))
    found = []
    for segment in log.segments if log is not None else ():
        batches = segment._batches  # type: ignore[attr-defined]
        found += [(read_header(batch, 0), value_of(batch)) for batch in batches]
    return found


def fetch_of(index: int) -> FetchRequest:
    """Return a Fetch request with `read_committed` for all records of a partition."""
    asked = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 22)
    topic = FetchTopic(topic=OUT, partitions=[asked])
    return FetchRequest(max_wait_ms=0, isolation_level=1, replica_id=-1, max_bytes=1 << 22, topics=[topic])


def visible(found: Any) -> list[tuple[int, bytes]]:
    """Return the offset and value of each record in a response that `read_committed` consumers get."""
    records = found.records or b""
    pieces = records if isinstance(records, list) else [records]
    data = b"".join(each.to_bytes() if hasattr(each, "to_bytes") else bytes(each) for each in pieces)
    aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
    without: set[int] = set()
    shown = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        batch = data[position : position + header.size]
        position += header.size
        while aborted and aborted[0][0] <= header.base_offset:
            without.add(aborted.pop(0)[1])
        if header.is_control:
            if read_marker(batch, 0, len(batch))[0] == ABORT_MARKER:
                without.discard(header.producer_id)
        elif header.producer_id not in without:
            shown.append((header.base_offset, value_of(batch)))
    return shown
