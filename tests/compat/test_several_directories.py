"""Brokers take turns with several `log.dirs`: replica moves between directories, and stray logs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat.handover import Turns
from compat.peers import until
from compat.test_handover import there_and_back
from compat.transcript import Talk
from penstock import Admin, read_topic
from penstock.log.directory.identity_files import write_topic_id
from penstock.protocol.uuid import random_uuid

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(1800)]

VERSION = "4.3.0"

THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"

SOME = 3000
"""The number of 1,000-byte records in a log too large to move at once.

Apache Kafka moves a first MiB regardless of the throttle.
"""


def send(servers: str, topic: str, first: int, count: int) -> None:
    """Send records of 1,000 bytes to partition 0; each begins with its number."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, b"%09d" % number + bytes(991), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0


def numbers(servers: str, topic: str) -> list[int]:
    """Return the numbers of the records in partition 0, in the order of their offsets."""
    table = read_topic(topic, servers).sort_by("offset")
    return [int(value[:9]) for value in table.column("value").to_pylist()]


def state_of(directories: list[Path], pattern: str) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes()
        for directory in directories
        for found in directory.glob(pattern)
        for file in found.iterdir()
        if file.suffix != ".tmp"  # Apache Kafka leaves one where it sets a log aside, and takes it away later
    }


def begin_to_move(turns: Turns, topics: list[str]) -> None:
    """Start moving partition 0 of topics to the other directory, throttled so that it takes hours."""
    with Admin(turns.servers) as admin:
        admin.alter_config(broker=1, set={THROTTLE: "1000"})
    moves: dict[Path, list[dict[str, object]]] = {directory: [] for directory in turns.directories}
    for topic in topics:
        [there] = [directory for directory in turns.directories if (directory / f"{topic}-0").exists()]
        [other] = [directory for directory in turns.directories if directory != there]
        moves[other].append({"name": topic, "partitions": [0]})
    with Talk(turns.servers, {}, 0, settle_s=0, prefix="") as talk:
        dirs = [{"path": str(path), "topics": some} for path, some in moves.items() if some]
        answer = talk.ask_quietly("AlterReplicaLogDirs", 2, {"dirs": dirs})
        assert '"error_code": 0' in str(answer).replace("'", '"'), answer
    until(lambda: len(futures(turns)) == len(topics), "the moves begin")


def futures(turns: Turns) -> list[str]:
    return [path.name for directory in turns.directories for path in directory.glob("*-future")]


@pytest.mark.parametrize("killed", [False, True], ids=["in order", "killed"])
def test_a_move_that_has_begun(killed: bool, tmp_path: Path) -> None:
    """Penstock ignores an incomplete move, and Apache Kafka completes it, with the records Penstock added.

    A topic that Penstock deleted or created anew gets no old records back.
    """
    turns = Turns(tmp_path, directories=2)
    topics = ["moved", "deleted", "again"]
    with turns.kafka(VERSION, killed=killed) as servers, Admin(servers) as admin:
        for topic in topics:
            admin.create_topic(topic, 1)
            send(servers, topic, 0, SOME)
        before = {topic: turns.home(f"{topic}-0") for topic in topics}
        begin_to_move(turns, topics)
    half = state_of(turns.directories, "*-future")
    assert half
    with turns.ours(killed=killed) as servers, Admin(servers) as admin:
        assert numbers(servers, "moved") == list(range(SOME))
        send(servers, "moved", SOME, 100)
        admin.delete_topics(["deleted", "again"])
        admin.create_topic("again", 1)
        send(servers, "again", 1000, 10)
        assert turns.home("moved-0") == before["moved"]
    left = state_of(turns.directories, "moved-0*-future")
    assert left
    assert left.items() <= half.items()
    with turns.kafka(VERSION) as servers, Admin(servers) as admin:
        assert numbers(servers, "moved") == list(range(SOME + 100))
        assert numbers(servers, "again") == list(range(1000, 1010))
        admin.alter_config(broker=1, delete=[THROTTLE])
        until(lambda: not futures(turns) and turns.home("moved-0") != before["moved"], "the move ends")
        assert numbers(servers, "moved") == list(range(SOME + 100))
        send(servers, "moved", SOME + 100, 10)
        assert sorted(admin.list_topics()) == ["again", "moved"]
    sent = SOME + 110
    for _ in range(2):
        with turns.ours() as servers:
            assert numbers(servers, "moved") == list(range(sent))
            assert numbers(servers, "again") == list(range(1000, 1010))
            assert turns.home("moved-0") != before["moved"]
            send(servers, "moved", sent, 10)
        with turns.kafka(VERSION) as servers:
            assert numbers(servers, "moved") == list(range(sent + 10))
            send(servers, "moved", sent + 10, 10)
        sent += 20


def test_logs_without_metadata(tmp_path: Path) -> None:
    """Penstock leaves `-stray` directories, which Apache Kafka makes, unchanged byte for byte.

    Of other logs without metadata, Penstock deletes those of deleted topics, and adopts those with an
    unknown topic id.
    """
    turns = Turns(tmp_path, directories=2)
    topics = ["deleted", "found", "ghost", "known"]
    with turns.ours() as servers, Admin(servers) as admin:
        for topic in topics:
            admin.create_topic(topic, 1)
            send(servers, topic, 0, 10)
    aside = tmp_path / "aside"
    for topic in topics[:3]:
        shutil.copytree(turns.home(f"{topic}-0") / f"{topic}-0", aside / f"{topic}-0")
    with turns.ours() as servers, Admin(servers) as admin:
        admin.delete_topics(topics[:3])
    first, second = turns.directories
    shutil.copytree(aside / "ghost-0", second / "ghost-0")
    with turns.kafka(VERSION) as servers, Admin(servers) as admin:
        assert admin.list_topics() == ["known"]
    stray = state_of(turns.directories, "ghost-0.*-stray")
    assert stray
    shutil.copytree(aside / "deleted-0", first / "deleted-0")
    shutil.copytree(aside / "found-0", second / "found-0")
    write_topic_id(str(second / "found-0"), random_uuid())
    with turns.ours() as servers, Admin(servers) as admin:
        assert sorted(admin.list_topics()) == ["found", "known"]
        assert not list(first.glob("deleted-0*"))
        admin.create_topic("ghost", 1)
        send(servers, "ghost", 20, 5)
        assert numbers(servers, "ghost") == list(range(20, 25))
    assert state_of(turns.directories, "ghost-0.*-stray") == stray
    for broker in (turns.kafka(VERSION), turns.ours()):
        with broker as servers, Admin(servers) as admin:
            assert sorted(admin.list_topics()) == ["found", "ghost", "known"]
            assert numbers(servers, "ghost") == list(range(20, 25))
            assert numbers(servers, "known") == numbers(servers, "found") == list(range(10))
        assert state_of(turns.directories, "ghost-0.*-stray") == stray


@pytest.mark.parametrize("kills", [False, True], ids=["in order", "killed"])
def test_three_directories_there_and_back(kills: bool, tmp_path: Path) -> None:
    """Partitions stay in their directories, and each broker places new ones in directories with few."""
    turns = Turns(tmp_path, directories=3)
    there_and_back(turns, VERSION, 2, "penstock.metadata.version=4.0", kills=kills)
    counts = [len(list(directory.glob("*-[0-9]"))) for directory in turns.directories]
    assert min(counts) > 3
