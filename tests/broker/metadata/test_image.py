"""Tests of applying metadata records to a cluster image, and of writing an image as few records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from penstock.broker.metadata.directory_levels import lower
from penstock.broker.metadata.image import ClusterImage, metadata_level
from penstock.broker.metadata.metadata_log import RecordReader, frame, record_class, record_head
from penstock.errors import DecodeError, StorageError
from penstock.protocol import messages
from penstock.protocol.message import Message
from penstock.protocol.messages.client_quota_record import EntityData

T, U = bytes(range(16)), bytes(range(1, 17))
DIRECTORY = b"\x33" * 16


def framed(record: Message, version: int | None = None) -> bytes:
    assert record.API_KEY is not None
    version = record.VERSIONS[1] if version is None else version
    return bytes((1, record.API_KEY, version)) + record.encode(version)


def image_of(values: Iterable[bytes]) -> ClusterImage:
    image = ClusterImage()
    for record in RecordReader(is_strict=True).records(values):
        image.apply(record)
    return image


def folded(*records: Message) -> ClusterImage:
    return image_of(map(framed, records))


def level(number: int, name: str = "metadata.version") -> Message:
    return messages.FeatureLevelRecord(name=name, feature_level=number)


def partition(index: int = 0, topic_id: bytes = T, **fields: Any) -> Message:
    known = {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return messages.PartitionRecord(
        partition_id=index, topic_id=topic_id, directories=[DIRECTORY], **{**known, **fields}
    )


def out(image: ClusterImage) -> list[tuple[str, int, Message]]:
    """Return the name, the version and the content of each record that an image is written as."""
    found = []
    values = [frame(record, metadata_level(image.features)) for record in image.records()]
    for value in values:
        key, version, position = record_head(value)
        cls = record_class(key)
        assert cls is not None
        found.append((cls.NAME, version, cls.decode(value[position:], version)))
    assert list(image_of(values).records()) == list(image.records()), "the records make the same image"
    return found


def test_changes_of_partitions_are_applied() -> None:

    def change(**fields: Any) -> Message:
        return messages.PartitionChangeRecord(partition_id=0, topic_id=T, **fields)

    metadata = folded(
        level(25),
        messages.TopicRecord(name="t", topic_id=T),
        partition(),
        change(leader=-1, isr=[], eligible_leader_replicas=[1], last_known_elr=[1]),
        change(isr=[1]),
        change(leader=1, leader_recovery_state=1),
    )
    [_, _, (name, version, record)] = out(metadata)
    assert (name, version) == ("PartitionRecord", 2)
    assert isinstance(record, messages.PartitionRecord)
    assert (record.leader, record.leader_epoch, record.partition_epoch) == (1, 2, 3)
    assert (record.isr, record.eligible_leader_replicas, record.leader_recovery_state) == ([1], [1], 1)
    assert record.directories == [DIRECTORY]


def test_what_is_gone_leaves_nothing() -> None:
    metadata = folded(
        level(25),
        level(1, "group.version"),
        level(0, "group.version"),
        messages.TopicRecord(name="t", topic_id=T),
        partition(),
        messages.ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"),
        messages.RemoveTopicRecord(topic_id=T),
        messages.ConfigRecord(resource_type=4, resource_name="", name="b", value="1"),
        messages.ConfigRecord(resource_type=4, resource_name="", name="b", value=None),
        messages.UserScramCredentialRecord(name="u", mechanism=1),
        messages.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        messages.AccessControlEntryRecord(id=T),
        messages.RemoveAccessControlEntryRecord(id=T),
        messages.DelegationTokenRecord(token_id="x"),
        messages.RemoveDelegationTokenRecord(token_id="x"),
        messages.RegisterBrokerRecord(broker_id=2),
        messages.UnregisterBrokerRecord(broker_id=2),
        messages.ClientQuotaRecord(entity=[], key="k", value=1.0),
        messages.ClientQuotaRecord(entity=[], key="k", remove=True),
        messages.NoOpRecord(),
        messages.BeginTransactionRecord(name="x"),
        messages.TopicRecord(name="never", topic_id=U),
        messages.AbortTransactionRecord(reason="y"),
    )
    assert [name for name, _, _ in out(metadata)] == ["FeatureLevelRecord"]


def test_a_topic_made_again_keeps_its_settings() -> None:
    metadata = folded(
        level(25),
        messages.TopicRecord(name="t", topic_id=T),
        messages.RemoveTopicRecord(topic_id=T),
        messages.BeginTransactionRecord(name="x"),
        messages.TopicRecord(name="t", topic_id=U),
        messages.ConfigRecord(resource_type=2, resource_name="t", name="a", value="2"),
        messages.EndTransactionRecord(),
    )
    assert [name for name, _, _ in out(metadata)] == ["FeatureLevelRecord", "TopicRecord", "ConfigRecord"]


def test_registrations_follow_their_changes() -> None:
    metadata = folded(
        level(30),
        messages.RegisterBrokerRecord(broker_id=1, broker_epoch=12, log_dirs=[DIRECTORY]),
        messages.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=12, fenced=-1),
        messages.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=12, in_controlled_shutdown=1, cordoned_log_dirs=[T]
        ),
        messages.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, fenced=1),
    )
    [_, (_, version, broker)] = out(metadata)
    assert isinstance(broker, messages.RegisterBrokerRecord)
    assert (version, broker.broker_epoch, broker.fenced, broker.in_controlled_shutdown) == (
        4,
        12,
        False,
        True,
    )
    assert (broker.log_dirs, broker.cordoned_log_dirs) == ([DIRECTORY], [T])


@pytest.mark.parametrize(("number", "version"), [(14, 0), (21, 1), (25, 2)])
def test_a_lower_level_has_older_records_and_fewer_features(number: int, version: int) -> None:
    metadata = folded(
        level(30),
        level(2, "transaction.version"),
        level(1, "share.version"),
        messages.RegisterBrokerRecord(broker_id=1),
        messages.RegisterControllerRecord(controller_id=1),
        messages.TopicRecord(name="t", topic_id=T),
        partition(eligible_leader_replicas=[1]),
        messages.ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=2000),
    )
    lower(metadata, {"metadata.version": number, "transaction.version": 1})
    assert metadata.features == {"metadata.version": number, "transaction.version": 1}
    found = out(metadata)
    assert [name for name, _, _ in found] == [
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "TopicRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
    ]
    assert found[3][1] == version
    last = found[4][2]
    assert isinstance(last, messages.ProducerIdsRecord)
    assert (last.broker_id, last.next_producer_id) == (-1, 2000)


@pytest.mark.parametrize("value", [b"\1\x7e\0", b"\1\3\x09", b"\2\2\0", b"", b"\1\2\0\5"])
def test_what_is_unknown_or_damaged_is_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        image_of([value])


def test_a_reassigned_replica_keeps_its_directory_and_a_new_one_has_none_yet() -> None:
    """The partition record lists one directory per replica; a new replica gets the zero id.

    Apache Kafka does not start if the numbers of directories and replicas differ.
    """
    metadata = folded(
        level(25),
        messages.TopicRecord(name="t", topic_id=T),
        messages.PartitionRecord(topic_id=T, partition_id=0, replicas=[1, 2], directories=[T, U]),
        messages.PartitionChangeRecord(topic_id=T, partition_id=0, replicas=[2, 3]),
    )
    record = out(metadata)[-1][2]
    assert isinstance(record, messages.PartitionRecord)
    assert record.directories == [U, bytes(16)]


def test_a_gap_in_the_partitions_of_a_topic_is_refused() -> None:
    with pytest.raises(StorageError, match="makes partition 1 of topic t, which has 0"):
        folded(messages.TopicRecord(name="t", topic_id=T), partition(1))


def test_every_type_of_record_with_an_effect_is_written_again() -> None:
    """Records are kept also if this broker does not use them, such as controllers and newer ACL entries."""
    records = [
        level(30),
        messages.RegisterBrokerRecord(broker_id=1, broker_epoch=12, fenced=True, rack="r"),
        messages.RegisterControllerRecord(controller_id=1),
        messages.TopicRecord(name="t", topic_id=T),
        partition(leader_recovery_state=1, adding_replicas=[2], removing_replicas=[3]),
        messages.ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"),
        messages.ConfigRecord(resource_type=2, resource_name="made later", name="a", value="1"),
        messages.ConfigRecord(resource_type=4, resource_name="", name="b", value="1"),
        messages.ConfigRecord(resource_type=32, resource_name="g", name="c", value="1"),
        messages.ClientQuotaRecord(
            entity=[EntityData(entity_type="user", entity_name=None)], key="producer_byte_rate", value=1.5
        ),
        messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=1000),
        messages.AccessControlEntryRecord(id=T, operation=3, permission_type=3, principal="User:a"),
        messages.AccessControlEntryRecord(id=U, operation=99, permission_type=3, principal="User:a"),
        messages.UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"l", iterations=4096
        ),
        messages.DelegationTokenRecord(token_id="x", owner="User:a", requester="User:b", renewers=["User:c"]),
    ]
    metadata = folded(*records)
    assert list(metadata.records()) == records
    removals = [
        messages.UnfenceBrokerRecord(id=1, epoch=12),
        messages.FenceBrokerRecord(id=1, epoch=11),
        messages.UnregisterBrokerRecord(broker_id=1, broker_epoch=11),
        messages.UnregisterControllerRecord(controller_id=1),
        messages.RemoveAccessControlEntryRecord(id=U),
    ]
    assert [name for name, _, _ in out(folded(*records, *removals))].count("AccessControlEntryRecord") == 1
    [broker] = folded(*records, *removals).brokers.by_id.values()
    assert not broker.fenced
    assert not folded(*records, *removals).controllers
