"""KIP-848 groups of Penstock's and other consumers, on one and three Penstock brokers and on Kafka 4.3.

Members are processes that join, leave, stall and are killed. Every record must be processed. When no member
joins or leaves any more, each partition must be assigned to exactly one member.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from compat.group_members import COOPERATIVE, KIP_848
from compat.peers import LEAKY_CLIENTS, real_kafka
from compat.places import PLACES, made
from compat.test_consumer_groups import SETTINGS
from compat.test_groups_client import PARTITIONS, Scene, scene, storm
from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode

pytestmark = [pytest.mark.compat, *LEAKY_CLIENTS]

KAFKA = "4.3.0"
KINDS = ("penstock", "penstock-async", "confluent")


@pytest.fixture(scope="module", params=[*PLACES, KAFKA])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == KAFKA:
        with real_kafka(KAFKA, SETTINGS) as found:
            yield found
    else:
        with made(request.param, config=SETTINGS) as broker:
            yield broker.bootstrap_servers


def test_three_clients_share_a_topic(servers: str) -> None:
    """Three different clients join one after the other. Later one leaves, and one is killed."""
    with scene(servers, KIP_848) as group:
        group.produce(300)
        for kind in KINDS:
            group.join(kind)
        group.wait(lambda: not group.missing() and group.is_settled(), "everybody has a share")
        group.produce(300)
        group.end(group.members[0])
        group.end(group.members[-1], signal.SIGKILL)
        group.wait(lambda: not group.missing() and group.is_settled(), "the one that stays has everything")
        group.join("penstock")
        group.produce(300)
        group.wait(lambda: not group.missing() and group.is_settled(), "a new one has a share")


def test_only_what_moves_is_taken(servers: str) -> None:
    with scene(servers, KIP_848) as group:
        first = group.join("penstock")
        group.wait(lambda: len(first.held) == PARTITIONS, "the first has everything")
        group.join("confluent")
        group.wait(lambda: len(first.held) == PARTITIONS // 2 and group.is_settled(), "each has a half")
        taken = [places for word, places in first.told if word == "-"]
        assert taken == [frozenset(range(PARTITIONS)) - first.held]
        group.produce(200)
        group.wait(lambda: not group.missing(), "both read")
        group.end(group.members[-1])
        group.wait(lambda: len(first.held) == PARTITIONS, "the first has everything again")
        assert [places for word, places in first.told if word == "-"] == taken


@pytest.mark.parametrize("kind", ["java", "verifiable"])
def test_java_is_a_member_like_any_other(servers: str, kind: str) -> None:
    with scene(servers, KIP_848) as group:
        group.produce(200)
        group.join("penstock")
        group.join(kind)
        group.wait(lambda: not group.missing() and group.is_settled(), "both have a share")
        group.produce(200)
        group.wait(lambda: not group.missing(), "both read")
        assert all(member.read for member in group.members)
        group.end(group.members[0])
        group.produce(200)
        group.wait(lambda: not group.missing() and group.is_settled(), "Java has everything")


@pytest.mark.soak
@pytest.mark.parametrize("seconds", [12, 120])
def test_a_storm(servers: str, seconds: float) -> None:
    with scene(servers, KIP_848) as group:
        storm(group, seconds, 848, KINDS)


@pytest.mark.parametrize(("strategy", "other"), [("range", "confluent"), (COOPERATIVE, "penstock-async")])
def test_a_live_group_changes_its_protocol_and_back(servers: str, strategy: str, other: str) -> None:
    """Classic members are replaced with KIP-848 members one by one, and back; all keep reading.

    If librdkafka leads a cooperative group, its assignments contain user data, so the group keeps its
    protocol.
    """
    with scene(servers, KIP_848) as group:
        group.produce(100)
        for kind in ("penstock", other):
            group.join(kind, strategy)
        group.wait(lambda: not group.missing() and all(each.held for each in group.members), "classic ones")
        roll(group, [("penstock", KIP_848), ("confluent", KIP_848)])
        group.wait(lambda: not group.missing() and group.is_settled(), "new members share")
        roll(group, [("penstock", strategy), (other, strategy)])
        group.wait(lambda: not group.missing() and group.is_settled(), "classic members share again")


def test_franz_go_is_a_member_like_any_other(servers: str) -> None:
    with scene(servers, KIP_848) as group:
        group.produce(200)
        for kind in ("penstock", "franz", "confluent"):
            group.join(kind)
        group.wait(lambda: not group.missing() and group.is_settled(), "all have a share")
        group.produce(200)
        group.wait(lambda: not group.missing(), "all read")
        assert all(member.read for member in group.members)
        for member in group.members[::2]:
            group.end(member)
        group.produce(200)
        group.wait(lambda: not group.missing() and group.is_settled(), "franz-go has everything")


@pytest.mark.soak
def test_all_clients_are_upgraded_while_they_read(servers: str) -> None:
    """Classic members of four clients become members of the consumer protocol, one by one, and go back.

    At the end each of them must read a record, since during the changes others may read them all.
    """
    kinds = ("verifiable", "confluent", "franz", "penstock")
    with scene(servers, KIP_848) as group:
        group.produce(100)
        for kind in kinds:
            group.join(kind, "range")
        group.wait(lambda: not group.missing() and all(each.held for each in group.members), "classic ones")
        for strategy in (KIP_848, "range"):
            roll(group, [(kind, strategy) for kind in kinds])
            group.wait(lambda: not group.missing() and group.is_settled(), f"members of {strategy} share")
            group.produce(100)
            group.wait(lambda: not group.missing(), f"members of {strategy} read")
            assert all(member.read for member in group.members)


def test_java_goes_from_one_protocol_to_the_other_in_a_live_group(servers: str) -> None:
    """Java's console consumer changes protocol. It prints no assignment, so the test counts its records."""
    with scene(servers, KIP_848) as group:
        group.produce(100)
        group.join("java", "range")
        group.wait(lambda: not group.missing(), "a classic one reads")
        group.join("penstock-auto")
        group.join("java")
        group.wait(group.is_settled, "all have a share")
        group.produce(100)
        group.wait(lambda: not group.missing() and all(each.read for each in group.members), "all read")
        for member in group.members[1:]:
            group.end(member)
        group.produce(100)
        group.wait(lambda: not group.missing() and group.is_settled(), "the classic one has everything")


def roll(group: Scene, kinds: list[tuple[str, str]]) -> None:
    """Replace the members one by one with members of other kinds, and write records meanwhile."""
    for old, (kind, strategy) in zip(list(group.members), kinds, strict=True):
        group.end(old)
        group.produce(50)
        new = group.join(kind, strategy)
        group.produce(50)
        group.wait(lambda member=new: not group.missing() and bool(member.held), f"{kind} {strategy} shares")  # type: ignore[misc]


def test_what_a_member_sees_is_the_same_everywhere(servers: str) -> None:
    """Callbacks, epochs, offsets and errors are equal at each broker, and Kafka 4.3 is the reference."""
    topic = "seen"
    options = {"group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with Admin(servers) as admin:
        admin.create_topic(topic, 2)
        admin.create_topic("seen-as-well", 1)
    with Producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=number % 2)
    told: list[tuple[str, int]] = []
    with Consumer(servers, options, group_id="seen", group_instance_id="one") as consumer:
        consumer.subscribe(
            topic,
            on_assigned=lambda partitions: told.append(("assigned", len(partitions))),
            on_revoked=lambda partitions: told.append(("revoked", len(partitions))),
        )
        count = 0
        while count < 10:
            count += len(consumer.poll(100))
        first = consumer.group_metadata()
        assert (first.generation, first.group_instance_id) == (2, "one")
        consumer.commit()
        assert {at.offset for at in consumer.committed(consumer.assignment()).values() if at} == {5}
        consumer.subscribe(
            "^seen-as-.*", on_assigned=lambda partitions: told.append(("new", len(partitions)))
        )
        while [tp.topic for tp in consumer.assignment()] != ["seen-as-well"]:
            consumer.poll(100)
        with pytest.raises(KafkaError) as occupied:
            admin_commit(servers, "seen", topic)
        assert occupied.value.code == ErrorCode.NON_EMPTY_GROUP
    assert told == [("assigned", 2), ("new", 0), ("new", 1)] or told == [("assigned", 2), ("new", 1)]
    with Consumer(servers, options, group_id="seen", group_instance_id="one") as consumer:
        consumer.subscribe(topic)
        while len(consumer.assignment()) < 2:
            consumer.poll(100)
        assert consumer.poll(200) == []
        assert consumer.member_id != first.member_id
    for given, code in (
        ({"group.remote.assignor": "no-such"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"pattern": "^a(?!b)"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ):
        pattern = given.pop("pattern", topic)
        with Consumer(servers, {**options, **given}, group_id="refused") as consumer:
            consumer.subscribe(pattern)
            with pytest.raises(KafkaError) as caught:
                consumer.poll(20_000)
        assert caught.value.code == code


def admin_commit(servers: str, group: str, topic: str) -> None:
    """Commit an offset for a group without being a member of it."""
    with Admin(servers) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 1})
