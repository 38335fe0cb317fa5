"""Penstock's readers find in every file of a data directory what kafka-dump-log prints about it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from compat.dumped import comparable, dump_log, files_of, our_lines
from compat.handover_accounts import SETTINGS, fill
from compat.peers import java, maven_classpath, real_kafka, until
from penstock import Admin, Broker
from penstock.broker.metadata.directory_levels import set_level

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

FEW = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "metadata.log.max.record.bytes.between.snapshots": 3000,
}

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill_more(servers: str) -> None:
    """Write segments in every codec, a topic with LogAppendTime, and a group's members and offsets."""
    with Admin(servers) as admin:
        admin.create_topic("codecs", 2, config={"segment.bytes": "1048576", "index.interval.bytes": "500"})
        admin.create_topic("timed", 1, config={"message.timestamp.type": "LogAppendTime"})
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "compression.type": codec,
                "batch.num.messages": 50,
                "log_level": 0,
            }
        )
        for number in range(600):
            value = None if number % 100 == 7 else f"{codec} {number} ".encode() * 250
            headers = [("h", b"1"), ("i", None)][: number % 3]
            key = b"k%d" % number if number % 5 else None
            producer.produce("codecs", value, key=key, headers=headers, partition=number % 2)
            producer.produce("timed", b"%d" % number, timestamp=1_000_000 + number)
        assert producer.flush(60) == 0
    settings = {"bootstrap.servers": servers, "group.id": "members", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
    consumer.subscribe(["timed"])
    until(lambda: consumer.poll(0.1) is not None, "the group's first record")
    consumer.commit(asynchronous=False)
    in_transaction = Producer({"bootstrap.servers": servers, "transactional.id": "offsets", "log_level": 0})
    for does_commit in (True, False):
        if does_commit:
            in_transaction.init_transactions(60)
        in_transaction.begin_transaction()
        in_transaction.produce("timed", b"in a transaction")
        place = consumer.position(consumer.assignment())
        in_transaction.send_offsets_to_transaction(place, consumer.consumer_group_metadata(), 60)
        (in_transaction.commit_transaction if does_commit else in_transaction.abort_transaction)(60)
    consumer.close()


def ours(directory: Path) -> AbstractContextManager[str]:
    return _Ours(Broker(data_dir=directory / "data", config={**SETTINGS, **FEW}))


class _Ours(AbstractContextManager[str]):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __enter__(self) -> str:
        return self._broker.__enter__().bootstrap_servers

    def __exit__(self, *raised: object) -> None:
        self._broker.close()


def apache_kafka(directory: Path) -> AbstractContextManager[str]:
    return real_kafka("4.3.0", {**SETTINGS, **FEW}, directory=directory, in_order=True)


@pytest.mark.soak
@pytest.mark.parametrize("writer", [ours, apache_kafka])
def test_every_file(writer: Callable[[Path], AbstractContextManager[str]], tmp_path: Path) -> None:
    """kafka-dump-log and Penstock agree on logs, indexes, snapshots and the records of internal topics."""
    with writer(tmp_path) as servers:
        fill(servers, "x")
        fill_more(servers)
    files = files_of(tmp_path / "data")
    assert len(files) == 4
    suffixes = {file.suffix for some in files.values() for file in some}
    assert suffixes == {".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"}
    for decoder, some in files.items():
        said = dump_log(some, *[decoder] * bool(decoder))
        assert sorted(said) == sorted(some)
        for file, lines in said.items():
            expected = our_lines(file)
            assert [*map(comparable, lines)] == [*map(comparable, expected)], file


def filled(directory: Path, settings: dict[str, str] | None = None) -> Path:
    """Make a Penstock data directory with data of every kind; return its metadata log's directory."""
    with Broker(data_dir=directory, config={**SETTINGS, **FEW, **(settings or {})}) as broker:
        fill(broker.bootstrap_servers, "x")
    return directory / "__cluster_metadata-0"


def test_metadata_and_a_partition(tmp_path: Path) -> None:
    """Penstock's metadata log, a snapshot, and all files of a partition with transactions are compared."""
    metadata = filled(tmp_path / "data")
    set_level(str(metadata.parent), "3.9")
    log = metadata.parent / "transactions-x-0" / f"{0:020d}.log"
    files = [*files_of(metadata.parent)["--cluster-metadata-decoder"], *log.parent.glob("0*")]
    said = dump_log(files, "--cluster-metadata-decoder")
    assert {file.suffix for file in said} == {
        *(".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
    }
    # Its records are no metadata: what is said of them without what they hold.
    mixed = [[line.partition("headerKeys")[0] for line in lines] for lines in (said.pop(log), our_lines(log))]
    assert len(mixed[0]) > 10
    assert mixed[0] == mixed[1]
    for file, lines in said.items():
        assert [*map(comparable, lines)] == [*map(comparable, our_lines(file))], file
    [newest] = [lines for file, lines in said.items() if file == max(metadata.glob("*.checkpoint"))]
    text = "\n".join(newest)
    for word in ("SnapshotHeader", "KRaftVoters", "SnapshotFooter", '"type":"ACCESS_CONTROL_ENTRY_RECORD"'):
        assert word in text


SHELL = "org.apache.kafka.shell.MetadataShell"


@pytest.mark.soak
def test_kafka_metadata_shell(tmp_path: Path) -> None:
    """The shell shows topics, settings, features, users, ACLs and quotas of Penstock's log and snapshot.

    3.9 is the last release that publishes its shell to Maven, so the directory has a metadata level of
    3.9.
    """
    metadata = filled(tmp_path / "data", {"penstock.metadata.version": "3.9"})
    set_level(str(metadata.parent), "3.9")
    for file in (max(metadata.glob("*.checkpoint")), metadata / f"{0:020d}.log"):
        words = ("-s", file, "tree", "/image")
        tree = ""

        def has_loaded(words: tuple[object, ...] = words) -> bool:
            """The shell does not wait until it has read the file: it may print an empty image."""
            nonlocal tree
            tree = java(maven_classpath("shell-3.9.1"), SHELL, *words, timeout_s=120, check=True).stdout
            return "plain-x" in tree

        until(has_loaded, "the shell has read the file")
        for word in (
            *("plain-x", "compacted-x", "transactions-x", "86400000", "172800000"),
            *(
                "metadataVersion",
                "user-x",
                "SCRAM-SHA-256",
                "producer_byte_rate",
                "User:user-x",
                "nextProducerId",
            ),
        ):
            assert word in tree, f"{word} in {file.name}"
        assert "gone-x" not in tree
