from __future__ import annotations

from penstock.client.cluster.metadata import LATE_ANSWERS_MAX, NO_TOPIC_ID, BrokerNode, ClusterMetadata
from penstock.model import TopicPartition
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

BROKERS = [MetadataResponseBroker(node_id=n, host=f"h{n}", port=9000 + n) for n in (1, 2)]
ID = b"1" * 16


def partition(number: int, leader: int, epoch: int = -1, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=number, leader_id=leader, leader_epoch=epoch, error_code=error, replica_nodes=[1, 2]
    )


def answer(
    name: str, *partitions: MetadataResponsePartition, error: int = 0, topic_id: bytes = ID
) -> MetadataResponse:
    topic = MetadataResponseTopic(name=name, partitions=list(partitions), error_code=error, topic_id=topic_id)
    return MetadataResponse(brokers=BROKERS, topics=[topic], controller_id=2, cluster_id="c")


def test_leaders_are_found_by_partition() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(1, 2), partition(0, 1)), ["t"])
    assert cluster.leader(TopicPartition("t", 0)) == 1
    assert cluster.leader(TopicPartition("t", 1)) == 2
    assert cluster.leader(TopicPartition("t", 2)) is None
    assert cluster.leader(TopicPartition("u", 0)) is None
    assert cluster.partitions_of("t") == [0, 1]
    assert cluster.partitions_of("u") == []
    assert str(cluster.nodes[2].address) == "h2:9002"
    assert (cluster.controller_id, cluster.cluster_id) == (2, "c")


def test_a_leader_that_is_no_known_broker_is_none() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 7), partition(1, 1, error=5)), ["t"])
    assert cluster.leader(TopicPartition("t", 0)) is None
    assert cluster.leader(TopicPartition("t", 1)) is None


def test_an_older_epoch_changes_nothing() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 1, epoch=5)), ["t"])
    cluster.update(answer("t", partition(0, 2, epoch=4)), ["t"])
    assert cluster.leader(TopicPartition("t", 0)) == 1
    cluster.update(answer("t", partition(0, 2, epoch=6)), ["t"])
    assert cluster.leader(TopicPartition("t", 0)) == 2


def test_epochs_of_a_topic_created_anew_begin_again() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 1, epoch=5)), ["t"])
    cluster.update(answer("t", partition(0, 2, epoch=0), topic_id=b"2" * 16), ["t"])
    assert cluster.leader(TopicPartition("t", 0)) == 2
    assert cluster.name_of(ID) is None
    assert cluster.name_of(b"2" * 16) == "t"


def test_a_broker_that_has_not_heard_of_a_new_topic_is_not_believed() -> None:
    first, second, third = (bytes([n]) * 16 for n in (1, 2, 3))
    cluster = ClusterMetadata()

    def told(topic_id: bytes, **more: int) -> bytes:
        cluster.update(answer("t", *(() if more else [partition(0, 1)]), topic_id=topic_id, **more), ["t"])
        return cluster.topic_id("t")

    assert told(first) == first
    assert told(NO_TOPIC_ID, error=3) == NO_TOPIC_ID
    assert told(second) == second
    assert [told(first) for _ in range(LATE_ANSWERS_MAX - 1)] == [second] * (LATE_ANSWERS_MAX - 1)
    assert told(second) == second
    assert told(third) == third
    assert [told(second) for _ in range(LATE_ANSWERS_MAX)] == [third] * LATE_ANSWERS_MAX
    # By now nothing else is told: somebody has set the cluster back.
    assert told(second) == second
    assert cluster.name_of(second) == "t"
    assert cluster.name_of(third) is None


def test_brokers_without_epochs_are_believed() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 1), topic_id=NO_TOPIC_ID), ["t"])
    cluster.update(answer("t", partition(0, 2), topic_id=NO_TOPIC_ID), ["t"])
    assert cluster.leader(TopicPartition("t", 0)) == 2
    assert cluster.topic_id("t") == NO_TOPIC_ID


def test_a_deleted_topic_loses_its_partitions() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 1)), ["t"])
    cluster.update(answer("t", error=3, topic_id=NO_TOPIC_ID), ["t"])
    assert cluster.topics["t"].error_code == 3
    assert cluster.partitions_of("t") == []


def test_no_leader_just_now_leaves_the_partitions() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 1)), ["t"])
    cluster.update(answer("t", error=5), ["t"])
    assert cluster.partitions_of("t") == [0]


def test_an_answer_about_all_topics_forgets_the_others() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("old", partition(0, 1)), ["old"])
    cluster.update(answer("new", partition(0, 1), topic_id=b"2" * 16), None)
    assert set(cluster.topics) == {"new"}
    assert cluster.name_of(ID) is None


def test_near_names_leave_out_internal_and_unknown_topics() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("orders", partition(0, 1)), ["orders"])
    cluster.update(answer("orderz", error=3, topic_id=NO_TOPIC_ID), ["orderz"])
    assert cluster.unknown_topic_hint("order") == "; did you mean 'orders'?"
    assert cluster.unknown_topic_hint("xyzzy") == ""


def test_a_leader_that_an_answer_names_counts_unless_it_is_older() -> None:
    cluster = ClusterMetadata()
    cluster.update(answer("t", partition(0, 1, epoch=4)), ["t"])
    where = TopicPartition("t", 0)
    node = BrokerNode(2, "two", 9092)
    assert not cluster.note_leader(where, 2, 4, node)
    assert not cluster.note_leader(TopicPartition("t", 1), 2, 5, node)
    assert not cluster.note_leader(TopicPartition("u", 0), 2, 5, node)
    assert not cluster.note_leader(where, -1, 5, node)
    assert cluster.leader(where) == 1
    assert cluster.note_leader(where, 2, 5, node)
    assert (cluster.leader(where), cluster.nodes[2].port) == (2, 9092)
    cluster.update(answer("t", partition(0, 1, epoch=4)), ["t"])
    assert cluster.leader(where) == 2
    assert not cluster.note_leader(where, 10, 6, None)
    assert cluster.leader(where) is None
