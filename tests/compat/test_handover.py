"""A data directory of ours goes to Apache Kafka and comes back, and clients stay connected meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.handover import IN_TRANSACTIONS, PLAIN, Connected, Turns
from compat.handover_accounts import SETTINGS, fill, picture
from compat.peers import java, maven_classpath, until
from penstock import Admin, Broker
from penstock.broker.metadata.directory_levels import set_level
from penstock.broker.metadata.folding import RECORD_NAMES
from penstock.broker.metadata.metadata_log import record_head
from penstock.broker.metadata.takeover import metadata_of
from penstock.log.directory.metadata_snapshots import newest_whole

pytestmark = [
    pytest.mark.compat,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_clients_stay_connected(tmp_path: Path) -> None:
    """Ours, Apache Kafka 4.3 by a dynamic quorum, ours: each stops in order, on the same port."""
    turns = Turns(tmp_path, dynamic_quorum=True)
    with turns.ours():
        with Admin(turns.servers) as admin:
            for topic in (PLAIN, IN_TRANSACTIONS):
                admin.create_topic(topic, 2)
        clients = Connected(turns.servers)
        clients.advance()
    try:
        with turns.kafka("4.3.0"):
            clients.advance()
        with turns.ours():
            clients.advance()
            clients.finish()
            clients.check()
    finally:
        clients.stop()


OURS = tuple(f"{name}={value}" for name, value in SETTINGS.items())


def settled(servers: str) -> dict[str, object]:
    """The picture once markers of ended transactions are written, which come behind the answers."""
    until(lambda: not preparing(servers), "transactions end")
    return picture(servers)


def preparing(servers: str) -> bool:
    with Admin(servers) as admin:
        return any(each.state.startswith("Prepare") for each in admin.list_transactions())


def there_and_back(
    turns: Turns, version: str, rounds: int, *settings: str, kills: bool = False
) -> dict[str, object]:
    """Have two brokers take turns; each shows what the one before it has, and adds to it."""
    before: dict[str, object] | None = None
    for number in range(rounds):
        killed = kills and number % 2 == 1
        with turns.ours(*OURS, *settings, killed=killed) as servers:
            if before is not None:
                assert picture(servers) == before
            fill(servers, f"ours-{number}")
            before = settled(servers)
        with turns.kafka(version, SETTINGS, killed=killed) as servers:
            assert picture(servers) == before
            fill(servers, f"kafka-{number}", deletes_records=not killed)
            before = settled(servers)
    with turns.ours(*OURS, *settings) as servers:
        after = picture(servers)
        assert after == before
    log = (turns.root / "server.log").read_text(errors="replace")
    assert "stray" not in log.lower()
    assert "conflicting entries" not in log
    return after


def test_everything_goes_to_3_9_and_back(tmp_path: Path) -> None:
    seen = there_and_back(Turns(tmp_path), "3.9", 1, "penstock.metadata.version=3.9")
    assert len([name for name in seen if name.startswith("topic ")]) == 8


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [False, True], ids=["in order", "killed"])
@pytest.mark.parametrize(("version", "level"), [("4.3.0", "4.0"), ("3.9.1", "3.9")])
def test_five_times_there_and_back(version: str, level: str, kills: bool, tmp_path: Path) -> None:
    there_and_back(Turns(tmp_path), version, 5, f"penstock.metadata.version={level}", kills=kills)


DUMP = "org.apache.kafka.tools.DumpLogSegments"
SHELL = "org.apache.kafka.shell.MetadataShell"


def kinds(values: Iterator[bytes] | list[bytes]) -> list[tuple[str, int]]:
    """Type and version of metadata records in their frames, as kafka-dump-log names them."""
    found = []
    for value in values:
        key, version, _ = record_head(value)
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", RECORD_NAMES[key]).upper()
        found.append((name, version))
    return found


def filled(directory: Path) -> Path:
    """A directory of ours with a bit of everything, and a snapshot at the level of 3.9; its metadata."""
    with Broker(data_dir=directory, config=SETTINGS) as broker:
        fill(broker.bootstrap_servers, "x")
    set_level(str(directory), "3.9")
    return directory / "__cluster_metadata-0"


def test_kafka_dump_log_reads_our_metadata(tmp_path: Path) -> None:
    """Each record of the log and of the snapshot is what our own reader says."""
    metadata = filled(tmp_path / "data")
    snapshot = newest_whole(str(metadata))
    assert snapshot is not None
    Path(snapshot.file.path).rename(metadata / "aside")
    records = metadata_of(str(metadata.parent), str(metadata), written_by_any=True)
    assert records is not None
    expected = kinds(records.values())
    (metadata / "aside").rename(snapshot.file.path)
    files = f"{metadata / ('0' * 20 + '.log')},{snapshot.file.path}"
    words = ("--cluster-metadata-decoder", "--files", files)
    said = java(maven_classpath("kafka-4.3.0"), DUMP, *words, check=True).stdout
    assert "isvalid: false" not in said
    assert said.count("isvalid: true") > 10
    payloads = [
        json.loads(line.partition("payload: ")[2]) for line in said.splitlines() if "payload: " in line
    ]
    found = [(each["type"], each["version"]) for each in payloads]
    assert found == expected + kinds(list(snapshot.values))
    assert f"Snapshot end offset: {snapshot.end_offset}, epoch: {snapshot.epoch}" in said
    assert "SnapshotHeader" in said
    assert "KRaftVoters" in said
    assert "SnapshotFooter" in said


@pytest.mark.soak
def test_kafka_metadata_shell_reads_our_metadata(tmp_path: Path) -> None:
    """3.9 is the last release whose shell is among the artefacts; it reads a level that it has."""
    snapshot = newest_whole(str(filled(tmp_path / "data")))
    assert snapshot is not None
    words = ("-s", snapshot.file.path, "tree", "/image")
    tree = ""

    def has_loaded() -> bool:
        """The shell does not wait until it has read the file: it may print an empty image."""
        nonlocal tree
        tree = java(maven_classpath("shell-3.9.1"), SHELL, *words, timeout_s=120, check=True).stdout
        return "plain-x" in tree

    until(has_loaded, "the shell has read the snapshot")
    for word in ("compacted-x", "user-x", "metadataVersion", "86400000", "producer_byte_rate"):
        assert word in tree
    assert "gone-x" not in tree
