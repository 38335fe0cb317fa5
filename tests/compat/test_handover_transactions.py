"""Transactions and idempotent producers continue when another broker takes over a data directory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from compat.handover import Turns, again
from compat.peers import LEAKY_CLIENTS, until
from penstock import Admin, read_topic
from penstock.broker.transactions.records import read_record, transaction_record
from penstock.broker.transactions.states import NUMBERS, TransactionState
from penstock.log.disk.disk_log import DiskLog
from penstock.protocol.messages.transaction_log_value import TransactionLogValue
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, decode_batch, encode_batch, encode_marker
from penstock.records.format.batch_header import split_batches

pytestmark = [
    pytest.mark.compat,
    pytest.mark.timeout(900),
    *LEAKY_CLIENTS,
]

LONG_MS = 900_000
"""The transaction timeout in ms: longer than any test takes, and the maximum that brokers allow."""


def transactional(servers: str, name: str) -> Producer:
    settings = {"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": LONG_MS}
    return Producer({**settings, "log_level": 0, "reconnect.backoff.max.ms": 200})


class Connected:
    """Producers of librdkafka that stay connected during a handover.

    Their transactions are in different states.
    """

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._open = {name: transactional(servers, name) for name in ("to-commit", "to-abort", "whole")}
        for producer in self._open.values():
            again(lambda producer=producer: producer.init_transactions(30))
        settings = {"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0}
        self._idempotent = Producer({**settings, "reconnect.backoff.max.ms": 200})
        self.committed: list[bytes] = []
        self.aborted: list[bytes] = []
        self.offsets: list[int] = []
        self._sent = 0

    def begin(self) -> None:
        """Begin three transactions with records in both partitions; end one, and leave two open."""
        for name in ("to-commit", "to-abort", "whole"):
            self._open[name].begin_transaction()
            self._produce(name)
        self._end("whole")
        self._send()
        with Admin(self._servers) as admin:
            admin.delete_records({("gone", 0): len(self.offsets)})

    def end(self) -> None:
        """Commit one open transaction after more records, abort the other, and run a further transaction."""
        self._produce("to-commit")
        self._end("to-commit")
        again(lambda: self._open["to-abort"].abort_transaction(60))
        self._open["whole"].begin_transaction()
        self._produce("whole")
        self._end("whole")
        self._send()

    def _produce(self, name: str) -> None:
        for partition in (0, 1):
            value = f"{name}-{self._sent}".encode()
            self._open[name].produce("a", value, partition=partition)
            (self.aborted if name == "to-abort" else self.committed).append(value)
            self._sent += 1
        assert self._open[name].flush(60) == 0

    def _end(self, name: str) -> None:
        again(lambda: self._open[name].commit_transaction(60))

    def _send(self) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            self.offsets.append(message.offset())

        for _ in range(5):
            self._idempotent.produce("gone", b"x", partition=0, on_delivery=delivered)
        assert self._idempotent.flush(60) == 0

    def check(self) -> None:
        """Assert that committed records are read once, aborted ones never, and that no offset is missing."""
        assert values(self._servers, "read_committed") == sorted(self.committed)
        assert values(self._servers, "read_uncommitted") == sorted(self.committed + self.aborted)
        assert self.offsets == list(range(len(self.offsets)))


def values(servers: str, isolation: str) -> list[bytes]:
    rows = read_topic("a", servers, isolation=isolation)
    return sorted(value.as_py() for value in rows["value"])


def all_ended(servers: str) -> bool:
    """Return True if the markers of all ended transactions are written.

    A broker answers EndTxn before it writes the markers.
    """
    with Admin(servers) as admin:
        return not any(each.state.startswith("Prepare") for each in admin.list_transactions())


@pytest.mark.parametrize(
    ("version", "level", "killed", "rounds"),
    [
        ("4.3.0", "4.0", False, 1),
        *(
            pytest.param(*each, killed, 2, marks=pytest.mark.soak)
            for each in (("4.3.0", "4.0"), ("3.9.1", "3.9"))
            for killed in (False, True)
        ),
    ],
)
def test_transactions_go_on(version: str, level: str, killed: bool, rounds: int, tmp_path: Path) -> None:
    """A transaction begun with one broker ends with the other.

    Idempotent producers continue too, even if their records were deleted.
    """
    turns = Turns(tmp_path)
    setting = f"penstock.metadata.version={level}"
    with turns.ours(setting, killed=killed) as servers:
        with Admin(servers) as admin:
            admin.create_topic("a", 2)
            admin.create_topic("gone", 1)
        clients = Connected(servers)
        clients.begin()
    for _ in range(rounds):
        for running in (turns.kafka(version, killed=killed), turns.ours(setting, killed=killed)):
            with running:
                clients.end()
                until(lambda: all_ended(turns.servers), "transactions end")
                clients.check()
                clients.begin()


def records_of(log: DiskLog) -> Iterator[tuple[str, TransactionLogValue, int]]:
    """Yield the transactional id, value and value version of each record in a `__transaction_state` log."""
    data = log.read(log.start_offset, 1 << 30).to_bytes()
    for start, end, _ in split_batches(data):
        for row in decode_batch(data, start, end, "__transaction_state", 0):
            found = read_record(row.key, row.value)
            if found is not None and found.value is not None:
                yield found.transactional_id, found.value, int.from_bytes((row.value or b"")[:2], "big")


def append(log: DiskLog, batch: bytes, now_ms: int) -> None:
    end = log.end_offset
    log.append(batch, first_offset=end, last_offset=end, max_timestamp=now_ms, now_ms=now_ms)
    log.close()


def prepare(directory: Path, transactional_id: str, state: TransactionState) -> None:
    """Change an open transaction into the state left by a broker that dies while ending it.

    The decision to commit or abort is stored, and only one of two partitions has its marker.
    """
    now_ms = time.time_ns() // 1_000_000
    for path in sorted(directory.glob("__transaction_state-*")):
        log = DiskLog(str(path), now_ms=now_ms)
        found = [each for each in records_of(log) if each[0] == transactional_id]
        if not found:
            continue
        _, value, version = found[-1]
        assert value.transaction_status == NUMBERS[TransactionState.ONGOING]
        value.transaction_status = NUMBERS[state]
        key, stored = transaction_record(transactional_id, value, version)
        epoch = log.leader_epochs.latest
        row = (key, stored, (), now_ms)
        append(log, encode_batch([row], base_offset=log.end_offset, partition_leader_epoch=epoch), now_ms)
        marked = DiskLog(str(directory / "a-0"), now_ms=now_ms)
        marker = encode_marker(
            COMMIT_MARKER if state == TransactionState.PREPARE_COMMIT else ABORT_MARKER,
            base_offset=marked.end_offset,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            coordinator_epoch=epoch,
            timestamp=now_ms,
            partition_leader_epoch=marked.leader_epochs.latest,
        )
        append(marked, marker, now_ms)
        return
    raise AssertionError(f"{transactional_id} is not in {directory}")


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_a_decision_is_carried_out_by_the_next_broker(version: str, tmp_path: Path) -> None:
    """Each broker completes the other's transaction.

    The metadata level is that of 3.9, with transactions as before KIP-890.
    """
    turns = Turns(tmp_path)
    setting = "penstock.metadata.version=3.9"
    expected: list[bytes] = []

    def leave_open(tag: str) -> None:
        for name in ("to-commit", "to-abort"):
            producer = transactional(turns.servers, name)
            producer.init_transactions(60)
            producer.begin_transaction()
            for partition in (0, 1):
                value = f"{name}-{tag}-{partition}".encode()
                producer.produce("a", value, partition=partition)
                if name == "to-commit":
                    expected.append(value)
            assert producer.flush(60) == 0

    with turns.ours(setting, killed=True) as servers:
        with Admin(servers) as admin:
            admin.create_topic("a", 2)
        leave_open("first")
    for number, running in enumerate(
        (turns.kafka(version, killed=True), turns.ours(setting, killed=True), turns.kafka(version))
    ):
        for name, state in (
            ("to-commit", TransactionState.PREPARE_COMMIT),
            ("to-abort", TransactionState.PREPARE_ABORT),
        ):
            prepare(turns.directory, name, state)
        with running as servers:
            until(lambda: all_ended(turns.servers), "transactions end")
            with Admin(servers) as admin:
                states = {each.transactional_id: each.state for each in admin.list_transactions()}
            assert states == {"to-commit": "CompleteCommit", "to-abort": "CompleteAbort"}
            assert values(servers, "read_committed") == sorted(expected)
            leave_open(str(number))
