"""Tests of starting on data directories of Apache Kafka: incomplete ones are refused and left unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic, produce
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.image import METADATA_FEATURE, ClusterImage
from penstock.broker.metadata.metadata_log import MetadataLog, RecordReader, frame
from penstock.broker.metadata.stores import open_disk_store, open_store
from penstock.broker.node import Node
from penstock.clock import ManualClock
from penstock.errors import KafkaError, StorageError
from penstock.log.directory.identity_files import read_meta_properties
from penstock.log.directory.metadata_snapshots import QuorumVoters, write_snapshot
from penstock.log.segments.headers import headers_behind
from penstock.log.segments.segment_files import segment_path
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from penstock.protocol.messages.begin_transaction_record import BeginTransactionRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.end_transaction_record import EndTransactionRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord
from penstock.protocol.messages.register_controller_record import RegisterControllerRecord
from penstock.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from penstock.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from penstock.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from penstock.protocol.messages.voters_record import Voter, VotersRecord
from penstock.protocol.uuid import uuid_from_text, uuid_to_text
from penstock.records.batch import decode_batch, encode_batch, encode_marker
from penstock.records.format.batch_header import BatchHeader, read_header, split_batches
from penstock.records.format.crc import crc32c
from penstock.security.acls import Operation

METADATA = "__cluster_metadata-0"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
T_ID, U_ID, RULE = bytes(range(16)), bytes(range(1, 17)), bytes(range(2, 18))
ELSEWHERE = b"\x77" * 16
SEGMENT = f"{0:020d}.log"


def framed(record: Message | bytes) -> bytes:
    """Frame a metadata record as Apache Kafka does, in its newest version; bytes are returned unchanged."""
    if isinstance(record, bytes):
        return record
    assert record.API_KEY is not None
    version = record.VERSIONS[1]
    return bytes((1, record.API_KEY, version)) + record.encode(version)


class Directory:
    """A data directory as Apache Kafka 4.3 leaves it, for node 1 with one topic."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._node(lambda node: None)
        meta = read_meta_properties(str(path))
        assert meta is not None
        assert meta.directory_id is not None
        self.directory_id = uuid_from_text(meta.directory_id)
        self.log = path / METADATA / SEGMENT
        self.log.write_bytes(b"")
        self.offset = 0
        self.control()
        level = FeatureLevelRecord(name=METADATA_FEATURE, feature_level=30)
        self.append([level])
        self.append([RegisterBrokerRecord(broker_id=1, log_dirs=[self.directory_id])])
        self.append([RegisterControllerRecord(controller_id=1)])
        self.append([TopicRecord(name="t", topic_id=T_ID), self.partition()])
        state = {"leaderId": 1, "leaderEpoch": 3, "currentVoters": [{"voterId": 1}], "data_version": 0}
        (path / METADATA / "quorum-state").write_text(json.dumps(state))
        (path / "bootstrap.checkpoint").write_bytes(b"")

    def _node(self, use: Callable[[Node], None]) -> None:
        clock = ManualClock(NOW_MS)
        node = make_node(open_disk_store(str(self.path), BrokerConfig(), clock), clock)
        use(node)
        node.store.close()

    def partition(self, index: int = 0, topic_id: bytes = T_ID, **fields: object) -> PartitionRecord:
        known = {
            "replicas": [1],
            "isr": [1],
            "leader": 1,
            "leader_epoch": 0,
            "partition_epoch": 0,
            "directories": [self.directory_id],
        }
        return PartitionRecord(partition_id=index, topic_id=topic_id, **{**known, **fields})  # type: ignore[arg-type]

    def write(self, batch: bytes, count: int) -> None:
        with self.log.open("ab") as file:
            file.write(batch)
        self.offset += count
        for name in ("index", "timeindex"):
            self.log.with_suffix(f".{name}").unlink(missing_ok=True)
        (self.log.parent / "leader-epoch-checkpoint").unlink(missing_ok=True)

    def append(self, records: list[Message | bytes] | list[Message], epoch: int = 3) -> None:
        rows = [(None, framed(record), (), NOW_MS) for record in records]
        self.write(encode_batch(rows, base_offset=self.offset, partition_leader_epoch=epoch), len(rows))

    def control(self, epoch: int = 3) -> None:
        rows = [(b"\0\0\0\2", b"leader change", (), NOW_MS)]
        batch = encode_batch(rows, is_control=True, base_offset=self.offset, partition_leader_epoch=epoch)
        self.write(batch, 1)

    def state(self) -> dict[str, bytes | None]:
        return {
            str(path.relative_to(self.path)): path.read_bytes() if path.is_file() else None
            for path in self.path.rglob("*")
        }

    def data(self, topic: str = "t", topic_id: bytes = T_ID, *batches: bytes) -> Path:
        """Make the directory of partition 0 of a topic, with a segment of these batches."""
        place = self.path / f"{topic}-0"
        place.mkdir()
        (place / SEGMENT).write_bytes(b"".join(batches))
        return place


def open_node(path: Path, **settings: str) -> Node:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({name.replace("_", "."): value for name, value in settings.items()})
    return make_node(open_disk_store(str(path), config, clock), clock, **settings)


def batch_at(offset: int, **fields: object) -> bytes:
    rows = [(b"k", b"v", (), NOW_MS)]
    return encode_batch(rows, base_offset=offset, **fields)  # type: ignore[arg-type]


def transactional(offset: int, producer_id: int) -> bytes:
    return batch_at(offset, is_transactional=True, producer_id=producer_id, producer_epoch=0, base_sequence=0)


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    return encode_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=offset,
        timestamp=NOW_MS,
    )


# --- what is refused -------------------------------------------------------------------------------------


def cut_by_a_snapshot(directory: Directory) -> None:
    directory.log.unlink()
    directory.log.with_name(f"{24:020d}.log").write_bytes(b"")
    (directory.path / METADATA / f"{24:020d}-{3:010d}.checkpoint").write_bytes(b"")


def only_a_snapshot(directory: Directory) -> None:
    directory.log.unlink()
    (directory.path / METADATA / f"{24:020d}-{3:010d}.checkpoint").write_bytes(b"")


def a_snapshot_beyond_the_end(directory: Directory) -> None:
    (directory.path / METADATA / f"{5000:020d}-{3:010d}.checkpoint").write_bytes(b"")


def a_missing_segment(directory: Directory) -> None:
    batch = batch_at(900, partition_leader_epoch=3)
    directory.log.with_name(f"{900:020d}.log").write_bytes(batch)


def several_voters(directory: Directory) -> None:
    state = {"leaderId": 1, "leaderEpoch": 3, "currentVoters": [{"voterId": 1}, {"voterId": 2}]}
    (directory.path / METADATA / "quorum-state").write_text(json.dumps(state))


def a_node_of_several(directory: Directory) -> None:
    directory.append([RegisterBrokerRecord(broker_id=2)])


def another_controller(directory: Directory) -> None:
    directory.append([RegisterControllerRecord(controller_id=3)])


def replicas_elsewhere(directory: Directory) -> None:
    directory.append([directory.partition(1, replicas=[1, 2])])


def another_log_directory(directory: Directory) -> None:
    directory.append([directory.partition(1, directories=[ELSEWHERE])])


def moved_to_another_log_directory(directory: Directory) -> None:
    directory.append([PartitionChangeRecord(partition_id=0, topic_id=T_ID, directories=[ELSEWHERE])])


def metadata_elsewhere(directory: Directory) -> None:
    directory.data()
    for file in directory.log.parent.iterdir():
        file.unlink()
    directory.log.parent.rmdir()


def an_open_metadata_transaction(directory: Directory) -> None:
    directory.append([BeginTransactionRecord(name="x"), TopicRecord(name="u", topic_id=U_ID)])


def a_newer_level(directory: Directory) -> None:
    directory.append([FeatureLevelRecord(name=METADATA_FEATURE, feature_level=34)])


def an_older_level(directory: Directory) -> None:
    directory.append([FeatureLevelRecord(name="metadata.version", feature_level=3)])


def an_unknown_record(directory: Directory) -> None:
    directory.append([b"\1\x7e\0whatever"])


def an_unknown_version(directory: Directory) -> None:
    directory.append([b"\1\x03\x09whatever"])


def access_rules(directory: Directory) -> None:
    directory.append([AccessControlEntryRecord(id=RULE)])


def tiered_storage(directory: Directory) -> None:
    directory.append(
        [ConfigRecord(resource_type=2, resource_name="t", name="remote.storage.enable", value="true")]
    )


def zookeeper(directory: Directory) -> None:
    directory.data()
    (directory.path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")


def damage_before_the_end(directory: Directory) -> None:
    data = bytearray(directory.log.read_bytes())
    data[200] ^= 1
    directory.log.write_bytes(data)
    (directory.path / ".kafka_cleanshutdown").unlink()


def damage_after_a_stop_in_order(directory: Directory) -> None:
    with directory.log.open("r+b") as file:
        file.truncate(directory.log.stat().st_size - 5)


REFUSED = [
    (cut_by_a_snapshot, "begins at offset 24, and no snapshot of what came before is whole"),
    (only_a_snapshot, "begins at offset 24"),
    (a_snapshot_beyond_the_end, "ends at offset 6, before its snapshot at 5000"),
    (a_missing_segment, "goes on at offset 900 behind offset 6"),
    (several_voters, r"the voters of its quorum are \[1, 2\], and this is node 1"),
    (a_node_of_several, r"node 1 of a cluster with the nodes \[2\]"),
    (another_controller, r"node 1 of a cluster with the nodes \[3\]"),
    (replicas_elsewhere, r"t-1 has its replicas on the nodes \[1, 2\]"),
    (another_log_directory, "t-1 lies in another directory of log.dirs"),
    (moved_to_another_log_directory, "t-0 lies in another directory of log.dirs"),
    (metadata_elsewhere, "its metadata are elsewhere"),
    (an_open_metadata_transaction, "ends within a metadata transaction"),
    (a_newer_level, "metadata.version is at level 34, the newest known is 33"),
    (an_older_level, "metadata.version is at level 3, from before 3.3"),
    (an_unknown_record, "a record of type 126 and version 0"),
    (an_unknown_version, "a record of type 3 and version 9"),
    (access_rules, "1 access rules"),
    (zookeeper, "a broker with ZooKeeper has written it"),
    (tiered_storage, "records of topic t are in tiered storage"),
    (damage_before_the_end, "its metadata log is damaged at position"),
    (damage_after_a_stop_in_order, "its metadata log is damaged at position"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED, ids=[change.__name__ for change, _ in REFUSED])
def test_it_is_refused_and_nothing_is_written(
    change: Callable[[Directory], None], said: str, tmp_path: Path
) -> None:
    directory = Directory(tmp_path)
    change(directory)
    before = directory.state()
    with pytest.raises(StorageError, match=f"cannot be taken over whole, and nothing in it was.*{said}.*; "):
        open_node(tmp_path)
    assert directory.state() == before


# --- several log directories -----------------------------------------------------------------------------


def with_another(directory: Directory, path: Path) -> None:
    """Add a second directory of `log.dirs`, with partition 1 of topic ``t``."""
    path.mkdir()
    (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":12}')
    lines = (directory.path / "meta.properties").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("directory.id")]
    (path / "meta.properties").write_text("\n".join([*kept, f"directory.id={uuid_to_text(ELSEWHERE)}\n"]))
    directory.append([directory.partition(1, directories=[ELSEWHERE])])
    directory.append([directory.partition(2, directories=[ELSEWHERE])])
    directory.data("t", T_ID, batch_at(0))
    place = path / "t-1"
    place.mkdir()
    (place / SEGMENT).write_bytes(batch_at(0) + batch_at(1))
    (place / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_to_text(T_ID)}")


@pytest.mark.parametrize("order", [0, 1])
def test_partitions_lie_in_any_of_several_directories(order: int, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with_another(Directory(first), second)
    paths = [str(first), str(second)]
    paths = paths[order:] + paths[:order]
    for number in range(2):
        clock = ManualClock(NOW_MS)
        config = BrokerConfig({"log.dirs": ",".join(paths)})
        node = Node(config, open_store(config, clock), clock)
        topic = node.cluster.topic("t")
        assert [each.high_watermark for each in topic.partitions] == [1, 2, number]
        produce(node, batch_of(b"v"), partition=2)
        made = make_topic(node, f"made-{number}", 4)
        for index in range(4):
            produce(node, batch_of(b"v"), topic=made.name, partition=index)
        found = {each.log_dir: each for each in ask(node, DescribeLogDirsRequest(topics=None), 4).results}
        assert set(found) == set(paths)
        assert {t.name for t in found[str(second)].topics} >= {"t", f"made-{number}"}
        node.store.close()
        assert (second / f"t-{2}" / SEGMENT).stat().st_size > 0, "where its record says"
        for each in (first, second):
            assert len(list(each.glob(f"made-{number}-*"))) == 2
            assert json.loads((each / ".kafka_cleanshutdown").read_text())["version"] == 0


def in_another_too(first: Path, second: Path) -> None:
    (second / "t-0").mkdir()


def of_another_cluster(first: Path, second: Path) -> None:
    text = (second / "meta.properties").read_text()
    (second / "meta.properties").write_text(text.replace("cluster.id=", "cluster.id=x"))


def without_an_owner(first: Path, second: Path) -> None:
    (second / "meta.properties").unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (in_another_too, "it holds t-0, which is in .*first as well"),
        (of_another_cluster, "it is not of the cluster and the node of .*"),
        (without_an_owner, "no meta.properties, which says whose they are"),
    ],
)
def test_directories_that_do_not_belong_together_are_refused(
    change: Callable[[Path, Path], None], said: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    directory = Directory(first)
    with_another(directory, second)
    change(first, second)
    before = directory.state()
    config = BrokerConfig({"log.dirs": f"{first},{second}"})
    with pytest.raises(StorageError, match=f"cannot be taken over whole, and nothing in it was.*{said}.*; "):
        open_store(config, ManualClock(NOW_MS))
    assert directory.state() == before
    assert (second / ".kafka_cleanshutdown").exists()


def test_a_new_directory_is_added_to_one_that_exists(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    Directory(first)
    config = BrokerConfig({"log.dirs": f"{first},{second}"})
    open_store(config, ManualClock(NOW_MS)).close()
    one, two = read_meta_properties(str(first)), read_meta_properties(str(second))
    assert one is not None
    assert two is not None
    assert one[:2] == two[:2]
    assert one.directory_id != two.directory_id


# --- snapshots -------------------------------------------------------------------------------------------


def with_a_snapshot(directory: Directory) -> None:
    """Write records of topic ``u`` and a setting, then a metadata snapshot, then another topic."""
    directory.append([TopicRecord(name="u", topic_id=U_ID), directory.partition(0, U_ID)])
    directory.append([changed(-1), changed(1)])
    setting = ConfigRecord(resource_type=2, resource_name="u", name="retention.ms", value="1234")
    directory.append([setting, ProducerIdsRecord(next_producer_id=4000)])
    image, reader = ClusterImage(), RecordReader()
    for _, batch, header in headers_behind_with_data(directory):
        if not header.is_control:
            rows = decode_batch(batch, 0, len(batch), "x", 0)
            for record in reader.records(row.value or b"" for row in rows):
                image.apply(record)
    write_snapshot(
        str(directory.log.parent),
        directory.offset,
        3,
        (frame(record, 30) for record in image.records()),
        quorum=QuorumVoters(),
        last_timestamp_ms=NOW_MS,
        now_ms=NOW_MS,
    )


def headers_behind_with_data(directory: Directory) -> list[tuple[int, bytes, BatchHeader]]:
    data = directory.log.read_bytes()
    return [(start, data[start:end], read_header(data, start)) for start, end, _ in split_batches(data)]


def cut_off(directory: Directory) -> None:
    """Let the metadata log begin where the snapshot ends, as Apache Kafka does after some time."""
    directory.log.unlink()
    directory.log = directory.log.with_name(f"{directory.offset:020d}.log")
    directory.log.write_bytes(b"")


@pytest.mark.parametrize("form", ["whole", "cut", "no log"])
def test_metadata_come_from_a_snapshot_and_the_log_behind_it(form: str, tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    with_a_snapshot(directory)
    if form != "whole":
        cut_off(directory)
    if form == "no log":
        directory.log.unlink()
    else:
        third = bytes(range(3, 19))
        directory.append([TopicRecord(name="after", topic_id=third), directory.partition(0, third)])
    directory.data("stale", b"\x55" * 16, batch_at(0))
    (tmp_path / "stale-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {'V' * 22}")
    for number in range(2):
        node = open_node(tmp_path)
        expected = {"t", "u"} | ({"after"} if form != "no log" else set())
        assert set(node.cluster.topics) - {"new-0"} == expected, "what was deleted does not come back"
        assert node.cluster.topic("u").config.overrides == {"retention.ms": "1234"}
        assert node.cluster.topic("t").partition(0).leader_epoch == 3 + number, "each start has its epoch"
        assert node.cluster.new_producer_id(NOW_MS) >= 4000
        assert (tmp_path / "stale-0").is_dir()
        if not number:
            make_topic(node, "new-0")
        node.store.close()


def test_a_damaged_snapshot_gives_way_to_an_older_one(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    with_a_snapshot(directory)
    cut_off(directory)
    directory.append([FeatureLevelRecord(name=METADATA_FEATURE, feature_level=30)])
    newer = tmp_path / METADATA / f"{directory.offset:020d}-{3:010d}.checkpoint"
    newer.write_bytes(b"torn")
    node = open_node(tmp_path)
    assert set(node.cluster.topics) == {"t", "u"}
    node.store.close()


def test_several_voters_in_control_records_are_refused(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    (directory.path / METADATA / "quorum-state").write_text('{"leaderEpoch":3,"data_version":1}')
    voters = VotersRecord(version=0, voters=[Voter(voter_id=each) for each in (1, 2)])
    rows = [(b"\0\0\0\6", voters.encode(0), (), NOW_MS)]
    batch = encode_batch(rows, is_control=True, base_offset=directory.offset, partition_leader_epoch=3)
    directory.write(batch, 1)
    before = directory.state()
    with pytest.raises(StorageError, match=r"the voters of its quorum are \[1, 2\], and this is node 1"):
        open_node(tmp_path)
    assert directory.state() == before


# --- what is taken over ----------------------------------------------------------------------------------


def test_a_directory_that_is_whole_is_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = Directory(tmp_path)
    directory.append([UserScramCredentialRecord(name="u", mechanism=1)])
    directory.append([AccessControlEntryRecord(id=RULE), RemoveAccessControlEntryRecord(id=RULE)])
    directory.append([DelegationTokenRecord(token_id=each) for each in ("kept", "removed")])
    directory.append([RemoveDelegationTokenRecord(token_id="removed")])
    directory.append([RegisterBrokerRecord(broker_id=2), UnregisterBrokerRecord(broker_id=2)])
    directory.append([TopicRecord(name="gone", topic_id=U_ID), directory.partition(0, U_ID, replicas=[2])])
    directory.append([RemoveTopicRecord(topic_id=U_ID)])
    (tmp_path / METADATA / f"{3:020d}-{3:010d}.checkpoint").write_bytes(b"the log is whole all the same")
    directory.data("__transaction_state", U_ID)
    directory.data("t", T_ID, transactional(0, 5), marker(1, 5, 1))
    node = open_node(tmp_path)
    assert set(node.cluster.topics) == {"t", "__transaction_state"}
    assert node.cluster.topic("t").partition(0).high_watermark == 2
    assert "1 delegation tokens, which cannot be verified without" in caplog.text
    assert list(node.cluster.security.credentials) == [("u", 1)]
    node.store.close()
    open_node(tmp_path).store.close()


def test_access_rules_are_obeyed_where_there_is_an_authorizer(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    rule = {"resource_type": 2, "resource_name": "t", "pattern_type": 3, "operation": 3, "permission_type": 3}
    directory.append([AccessControlEntryRecord(id=RULE, principal="User:ann", host="*", **rule)])
    directory.data("t", T_ID)
    node = open_node(tmp_path, authorizer_class_name=STANDARD, super_users="User:root")
    assert node.authorizer is not None
    assert node.authorizer.rights("User:ann", "10.0.0.1").on_topic(Operation.READ, "t")
    assert not node.authorizer.rights("User:bob", "10.0.0.1").on_topic(Operation.READ, "t")
    node.store.close()


def test_records_of_metadata_transactions_count_once_they_have_ended(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.append([BeginTransactionRecord(name="x"), TopicRecord(name="never", topic_id=U_ID)])
    directory.append([AbortTransactionRecord(reason="y")])
    directory.append([BeginTransactionRecord(name="x"), TopicRecord(name="u", topic_id=U_ID)])
    directory.append([directory.partition(0, U_ID), EndTransactionRecord()])
    node = open_node(tmp_path)
    assert set(node.cluster.topics) == {"t", "u"}
    node.store.close()


def epoch_told(node: Node) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    return int(ask(node, request, 9).topics[0].partitions[0].leader_epoch)


def changed(leader: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=T_ID, leader=leader, isr=[1] if leader == 1 else [])


def test_settings_count_whose_records_come_before_the_topic(tmp_path: Path) -> None:
    """Settings apply even if their records precede the topic's record, as in Apache Kafka 3.3 to 3.8."""
    directory = Directory(tmp_path)
    settings = {"retention.ms": "1234", "not.known.here": "x"}
    directory.append(
        [
            *(
                ConfigRecord(resource_type=2, resource_name="u", name=name, value=value)
                for name, value in settings.items()
            ),
            TopicRecord(name="u", topic_id=U_ID),
            directory.partition(0, topic_id=U_ID),
        ]
    )
    node = open_node(tmp_path)
    assert node.cluster.topic("u").config.overrides == {"retention.ms": "1234"}
    assert node.cluster.image.topics["u"].overrides == settings
    node.cluster.delete_topics([node.cluster.topic("u")], NOW_MS)
    assert make_topic(node, "u").config.overrides == {}


def test_leader_epochs_go_on_where_apache_kafka_left_a_partition_without_a_leader(tmp_path: Path) -> None:
    """Apache Kafka left the partition without a leader in epoch 3; the broker continues with epoch 4.

    Clients that have seen epoch 3 wait for a later one.
    """
    directory = Directory(tmp_path)
    directory.append([changed(-1)])
    directory.append([PartitionChangeRecord(partition_id=0, topic_id=T_ID, isr=[1])])
    directory.append([changed(1)])
    directory.append([changed(-1)])
    directory.data("t", T_ID, batch_at(0, partition_leader_epoch=2))
    node = open_node(tmp_path)
    assert epoch_told(node) == 4
    assert produce(node, batch_of(b"v")).base_offset == 1
    assert epoch_told(node) == 4, "the same number before and after the log is opened"
    node.store.close()
    node = open_node(tmp_path)
    assert epoch_told(node) == 5, "each start begins an epoch"
    node.store.close()
    epochs = [header.partition_leader_epoch for _, _, header in headers_behind(str(tmp_path / "t-0"))]
    assert epochs == [2, 4]


def test_each_start_of_a_broker_begins_a_leader_epoch(tmp_path: Path) -> None:
    """With leader epochs consumers detect records that a crash has truncated, as with Apache Kafka."""

    def ends(node: Node) -> list[tuple[int, int]]:
        partition = node.cluster.topic("t").partition(0)
        return [partition.end_of_epoch(epoch) for epoch in range(5)]

    node = open_node(tmp_path)
    make_topic(node, "t")
    produce(node, batch_of(b"v"))
    assert (epoch_told(node), ends(node)[:2]) == (0, [(0, 1), (-1, -1)])
    for _ in range(2):  # two starts, and nothing is written in between
        node.store.close()
        node = open_node(tmp_path)
    assert epoch_told(node) == 2
    assert ends(node) == [(0, 1), (0, 1), (2, 1), (-1, -1), (-1, -1)]
    produce(node, batch_of(b"w"))
    assert ends(node) == [(0, 1), (0, 1), (2, 2), (-1, -1), (-1, -1)]
    node.store.close()
    checkpoint = (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text().split("\n")
    assert checkpoint[:4] == ["0", "2", "0 0", "2 1"]
    node = open_node(tmp_path)
    assert ends(node) == [(0, 1), (0, 1), (2, 2), (3, 2), (-1, -1)]
    with pytest.raises(KafkaError) as refusal:
        node.cluster.topic("t").partition(0).check_leader_epoch(2)
    assert refusal.value.code == ErrorCode.FENCED_LEADER_EPOCH
    node.store.close()


def test_a_start_on_a_disk_that_refuses_stays_in_the_last_leader_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = open_node(tmp_path)
    make_topic(node, "t")
    node.store.close()

    def fail(*what: object, **how: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(MetadataLog, "append", fail)
        node = open_node(tmp_path)
    assert epoch_told(node) == 0
    assert "partitions stay in the leader epochs of the last start: the disk is full" in caplog.text
    node.store.close()


def test_raft_epochs_do_not_go_back(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.control(epoch=7)
    node = open_node(tmp_path)
    make_topic(node, "ours")
    node.store.close()
    epochs = [header.partition_leader_epoch for _, _, header in headers_behind(str(tmp_path / METADATA))]
    assert epochs == sorted(epochs)
    assert epochs[-1] == 8
    state = json.loads((tmp_path / METADATA / "quorum-state").read_text())
    assert state["leaderEpoch"] == 8
    assert state["currentVoters"] == [{"voterId": 1}]


def test_raft_epochs_do_not_go_back_behind_the_state_of_the_quorum(tmp_path: Path) -> None:
    """Apache Kafka was elected in epoch 9 and died before its first write, so the broker starts epoch 10."""
    directory = Directory(tmp_path)
    state = {"leaderId": 1, "leaderEpoch": 9, "votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1}
    (directory.path / METADATA / "quorum-state").write_text(json.dumps(state))
    node = open_node(tmp_path)
    make_topic(node, "ours")
    assert node.cluster.metadata_epoch == 10
    node.store.close()
    epochs = [header.partition_leader_epoch for _, _, header in headers_behind(str(tmp_path / METADATA))]
    assert epochs[-1] == 10
    node = open_node(tmp_path)
    make_topic(node, "again")
    node.store.close()
    state = json.loads((tmp_path / METADATA / "quorum-state").read_text())
    assert (state["leaderEpoch"], state["data_version"]) == (11, 1)


def test_a_start_that_writes_nothing_begins_no_epoch(tmp_path: Path) -> None:
    Directory(tmp_path).append([RemoveTopicRecord(topic_id=T_ID)])  # with a topic, it leads that anew
    before = (tmp_path / METADATA / "quorum-state").read_bytes()
    open_node(tmp_path).store.close()
    assert (tmp_path / METADATA / "quorum-state").read_bytes() == before


def test_the_mark_of_a_clean_shutdown_has_the_epoch_of_the_last_registration(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.append([RegisterBrokerRecord(broker_id=1, broker_epoch=5)])
    directory.append([RegisterBrokerRecord(broker_id=1, broker_epoch=12)])
    open_node(tmp_path).store.close()
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 12}


@pytest.mark.parametrize(("level", "versions"), [(11, {3: 0, 5: 0}), (17, {3: 1, 5: 0}), (25, {3: 1, 5: 2})])
def test_records_are_written_in_versions_that_the_level_has(level: int, versions: dict[int, int]) -> None:
    for record in (PartitionRecord(replicas=[1]), PartitionChangeRecord(leader=1)):
        data = frame(record, level)
        assert (data[1], data[2]) in versions.items()


def test_a_tail_that_a_crash_has_torn_is_cut_as_ever(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    make_topic(node, "whole")
    make_topic(node, "torn")
    node.store.abandon()
    log = Path(segment_path(str(tmp_path / METADATA), 0))
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 5)
    node = open_node(tmp_path)
    assert set(node.cluster.topics) == {"whole"}
    node.store.close()


def test_a_directory_without_an_id_is_served_again_and_again(tmp_path: Path) -> None:
    Directory(tmp_path)
    path = tmp_path / "meta.properties"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("directory.id")))
    for number in range(3):
        node = open_node(tmp_path)
        make_topic(node, f"topic-{number}")
        node.store.close()
    assert "directory.id" not in path.read_text()


def test_transactions_of_apache_kafka_are_taken_over(tmp_path: Path) -> None:
    """One transaction was aborted, one is open in the newest producer snapshot, and one began later."""
    directory = Directory(tmp_path)
    directory.append([TopicRecord(name="__transaction_state", topic_id=U_ID), directory.partition(0, U_ID)])
    directory.data("__transaction_state", U_ID)
    place = directory.data(
        "t", T_ID, transactional(0, 5), marker(1, 5, 0), transactional(2, 6), transactional(3, 7)
    )
    fields = (5, 0, 1, 2)
    entry = bytes(2) + b"".join(number.to_bytes(8, "big") for number in fields)
    (place / f"{0:020d}.txnindex").write_bytes(entry)
    open_one = ProducerEntry(
        producer_id=6, last_sequence=0, last_offset=2, coordinator_epoch=-1, current_txn_first_offset=2
    )
    body = ProducerSnapshot(producer_entries=[open_one]).encode(1)[4:]
    (place / f"{3:020d}.snapshot").write_bytes(b"\0\1" + crc32c(body).to_bytes(4, "big") + body)
    partition = open_node(tmp_path).cluster.topics["t"].partitions[0]
    assert partition.last_stable_offset == 2
    assert list(partition.states.transactions.open_transactions()) == [(6, 2), (7, 3)]
    assert [one[:3] for one in partition.aborted_transactions(0, 1000)] == [(5, 0, 1)]
