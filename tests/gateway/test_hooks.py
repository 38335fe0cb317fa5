"""Tests of a gateway's hooks: functions that observe, change, refuse, delay and drop messages."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire_client import WireClient
from for_each import for_each
from gateway.relays import World, answers_of, asked_of, request, response
from gateway.test_gateway import consume, produce
from penstock.client import Admin, Consumer, Producer
from penstock.client.admin.admin import NewTopic
from penstock.errors import ConfigError, KafkaError
from penstock.gateway import Gateway
from penstock.gateway.hooks import (
    Batch,
    Client,
    ClientRequest,
    Hook,
    Refused,
    address_header,
    checked_events,
    masked,
    renamed_topics,
    tenant,
)
from penstock.gateway.hooks.batches import changed_records
from penstock.gateway.hooks.chain import Hooks
from penstock.gateway.hooks.partitions import changed_responses
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.list_offsets_request import ListOffsetsRequest
from penstock.protocol.messages.list_offsets_response import ListOffsetsResponse
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.share_fetch_response import PartitionData as SharePartitionData
from penstock.protocol.messages.share_fetch_response import ShareFetchableTopicResponse, ShareFetchResponse
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.legacy import encode_message_set
from penstock.testing import KafkaBroker, KafkaCluster

PATIENCE_S = 30.0

READERS = itertools.count()
"""Numbers for the names of new consumer groups, each of which begins at the first record."""

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
HEARTBEATS = {0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 12: (0, 4), 18: (0, 4)}


def world(*hooks: Hook) -> World:
    return World(hooks=Hooks(hooks), versions=HEARTBEATS)


# --- one relay ---------------------------------------------------------------------------------------------


def test_what_no_hook_names_passes_as_bytes() -> None:
    seen: list[str] = []
    here = world(Hook(("Heartbeat",), on_request=lambda request: seen.append(request.api)))
    frame = request(ListOffsetsRequest(replica_id=-1), 5)
    here.client_sends(frame)
    assert here.broker.taken() == frame
    answer = response(ListOffsetsResponse(), 5)
    here.broker_sends(answer)
    assert here.client.taken() == answer
    assert seen == []


def test_a_request_whose_message_nobody_asks_for_passes_as_bytes() -> None:
    seen: list[tuple[Any, ...]] = []

    def look(request: ClientRequest) -> None:
        client = request.client
        seen.append((request.api, request.version, client.address, client.port, client.client_id))
        assert not request.is_decoded

    here = world(Hook(("Heartbeat",), on_request=look))
    frame = request(BEAT, 4)
    here.client_sends(frame, split=5)
    assert here.broker.taken() == frame
    answer = response(HeartbeatResponse(error_code=27), 4)
    here.broker_sends(answer)
    assert here.client.taken() == answer
    assert seen == [("Heartbeat", 4, "10.0.0.7", 1234, "device")]
    assert here.held == 0


def test_a_request_and_its_response_change() -> None:
    def to_cluster(request: ClientRequest) -> None:
        request.message.group_id += "-there"

    def to_client(request: ClientRequest, response: Any) -> HeartbeatResponse:
        assert request.message.group_id == "g-there"
        return HeartbeatResponse(error_code=response.error_code + 1)

    here = world(Hook(("Heartbeat",), on_request=to_cluster, on_response=to_client))
    here.client_sends(request(BEAT, 4, 9, "mine"))
    sent = here.broker.taken()
    assert asked_of(sent) == [(12, 4, 9)]
    assert b"g-there" in sent
    assert b"mine" in sent, "the client id is the client's"
    here.broker_sends(response(HeartbeatResponse(error_code=25), 4, 9))
    [(number, answer)] = answers_of(here.client.taken(), 12, 4)
    assert (number, answer.error_code) == (9, 26)


def test_hooks_are_called_in_order_and_back() -> None:
    order: list[str] = []
    hooks = [
        Hook(
            ("Heartbeat",),
            on_request=lambda request, name=name: order.append(f"request {name}"),  # type: ignore[misc]
            on_response=lambda request, response, name=name: order.append(f"response {name}"),  # type: ignore[misc]
        )
        for name in "ab"
    ]
    here = world(*hooks)
    here.client_sends(request(BEAT, 4))
    here.broker_sends(response(HeartbeatResponse(), 4))
    assert order == ["request a", "request b", "response b", "response a"]


def test_a_hook_answers_itself() -> None:
    here = world(Hook(("Heartbeat",), on_request=lambda request: HeartbeatResponse(error_code=27)))
    here.client_sends(request(BEAT, 4))
    assert here.broker.taken() == b""
    [(_, answer)] = answers_of(here.client.taken(), 12, 4)
    assert answer.error_code == 27


@pytest.mark.parametrize("part", ["on_request", "on_response"])
@pytest.mark.parametrize("error", ["GROUP_AUTHORIZATION_FAILED", 30])
def test_a_refusal_is_the_error_of_the_api(part: str, error: str | int) -> None:
    def refuse(*_: Any) -> None:
        raise Refused(error, "not today")

    here = world(Hook(("Heartbeat",), **{part: refuse}))
    here.client_sends(request(BEAT, 4))
    if part == "on_response":
        here.broker_sends(response(HeartbeatResponse(), 4))
    [(_, answer)] = answers_of(here.client.taken(), 12, 4)
    assert answer.error_code == 30
    assert here.failures == []
    assert here.held == 0


@pytest.mark.parametrize("part", ["on_request", "on_response"])
def test_a_hook_that_raises_ends_that_request_only(part: str) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    here = world(Hook(("Heartbeat",), **{part: fail}))
    here.client_sends(request(BEAT, 4))
    if part == "on_response":
        here.broker_sends(response(HeartbeatResponse(), 4))
    [(_, answer)] = answers_of(here.client.taken(), 12, 4)
    assert answer.error_code == -1
    assert here.failures == ["a hook for <Heartbeat v4 of 10.0.0.7>"]
    assert not here.client.is_closed
    frame = request(ListOffsetsRequest(replica_id=-1), 5)
    here.client_sends(frame)
    assert here.broker.taken().endswith(frame)


def test_a_delay_holds_up_what_follows() -> None:
    here = world(Hook(("Heartbeat",), on_request=lambda request: request.delay(5)))
    first, second = request(BEAT, 4, 1), request(ListOffsetsRequest(replica_id=-1), 5, 2)
    here.client_sends(first)
    here.client_sends(second)
    assert here.broker.taken() == b""
    [go_on] = here.timers
    go_on()
    assert here.broker.taken() == first + second


def test_what_is_dropped_is_never_answered_and_the_connection_stays() -> None:
    here = world(Hook(("Heartbeat",), on_request=lambda request: request.drop()))
    before, dropped = request(ListOffsetsRequest(replica_id=-1), 5, 1), request(BEAT, 4, 2)
    here.client_sends(before, dropped, request(ListOffsetsRequest(replica_id=-1), 5, 3))
    assert here.broker.taken() == before
    answer = response(ListOffsetsResponse(), 5, 1)
    here.broker_sends(answer)
    assert here.client.taken() == answer, "what was asked before is answered"
    here.client_sends(request(BEAT, 4, 4))
    assert here.client.taken() == here.broker.taken() == b""
    assert not here.client.is_closed
    assert here.relay.is_stuck
    assert here.held == 0


def test_a_response_is_dropped_after_the_cluster_has_carried_it_out() -> None:
    here = world(Hook(("Heartbeat",), on_response=lambda request, response: request.drop()))
    here.client_sends(request(BEAT, 4))
    assert here.broker.taken()
    here.broker_sends(response(HeartbeatResponse(), 4))
    assert here.client.taken() == b""
    assert not here.client.is_closed


def test_a_hook_closes_the_connection() -> None:
    here = world(Hook(("Heartbeat",), on_request=lambda request: request.close()))
    here.client_sends(request(BEAT, 4))
    assert here.client.is_closed
    assert here.ends == ["a hook closes the connection"]


def test_a_request_that_no_hook_can_read_ends_the_connection() -> None:
    here = world(Hook(("Heartbeat",), on_request=lambda request: request.message.group_id))
    whole = request(BEAT, 4)
    broken = bytearray(whole[: len(whole) - 3])
    broken[:4] = (len(broken) - 4).to_bytes(4, "big")
    here.client_sends(bytes(broken))
    assert here.client.is_closed
    assert here.held == 0


def test_slow_functions_run_beside_the_event_loop() -> None:
    here = world(Hook(("Heartbeat",), on_request=lambda request: None, blocks=True))
    frame = request(BEAT, 4)
    here.client_sends(frame)
    assert here.broker.taken() == b""
    here.work()
    assert here.broker.taken() == frame


def test_addresses_are_the_gateways_behind_a_hook_as_well() -> None:
    def look(request: ClientRequest, response: Any) -> None:
        assert response.brokers[0].host == "kafka-1"

    here = world(Hook(("Metadata",), on_response=look))
    here.client_sends(request(MetadataRequest(topics=None), 12))
    answer = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="kafka-1", port=9092)])
    here.broker_sends(response(answer, 12))
    [(_, answer)] = answers_of(here.client.taken(), 3, 12)
    assert (answer.brokers[0].host, answer.brokers[0].port) == ("gateway.test", 20_001)


def test_a_produce_without_acknowledgement_passes_and_is_refused_by_hanging_up() -> None:
    frame = request(ProduceRequest(acks=0, timeout_ms=1), 11)
    here = world(Hook(("Produce",), on_request=lambda request: None))
    here.client_sends(frame, frame)
    assert here.broker.taken() == frame + frame

    def refuse(request: ClientRequest) -> None:
        raise Refused("INVALID_RECORD")

    here = world(Hook(("Produce",), on_request=refuse))
    here.client_sends(frame)
    assert here.client.is_closed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"apis": ("Produced",), "on_request": print}, "did you mean Produce"),
        ({"apis": ("SaslHandshake",), "on_request": print}, "logins pass"),
        ({"apis": ("Metadata",), "on_batches": print}, "no other API has records"),
        ({"apis": "Produce", "on_request": print}, "a list of names"),
        ({"on_request": 7}, "a function is needed"),
    ],
)
def test_a_hook_that_cannot_be_meant_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Hook(**options)


def test_a_refusal_with_an_error_that_is_none_is_refused() -> None:
    for error in ("INVALID_RECORDS", "NONE", 0, 9999):
        with pytest.raises(ConfigError, match="there is no error"):
            Refused(error)


# --- in front of brokers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, num_partitions=3, default_replication_factor=3) as cluster:
        yield cluster


def values(servers: str, topic: str, count: int, **options: object) -> list[Any]:
    """Consume `count` records of a topic; return them in the order of partitions and offsets."""
    found: list[Any] = []
    end = time.monotonic() + PATIENCE_S
    with Consumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        group_id=f"readers {next(READERS)}",
        **options,
    ) as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} records"
            found += consumer.poll(100)
    return sorted(found, key=lambda record: (record.partition, record.offset))


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_are_masked_for_readers_and_stored_as_they_are(
    cluster: KafkaCluster, compression: str
) -> None:
    topic = f"cards-{compression}"
    cards = [json.dumps({"n": n, "card": {"number": f"4000{n}"}, "of": ["x"]}).encode() for n in range(50)]
    with Gateway(to=cluster.bootstrap_servers, hooks=[masked(topic, "card.number")]) as gateway:
        with Producer(bootstrap_servers=gateway.bootstrap_servers, compression_type=compression) as producer:
            for card in [*cards, b"no JSON", None]:
                producer.send(topic, card, key=b"k", headers=[("h", b"1")], partition=0)
            producer.flush()
        seen = values(gateway.bootstrap_servers, topic, 52)
    stored = values(cluster.bootstrap_servers, topic, 52)
    assert [each.value for each in stored] == [*cards, b"no JSON", None]
    assert [each.value for each in seen[50:]] == [b"no JSON", None]
    assert [json.loads(each.value) for each in seen[:50]] == [
        {"n": n, "card": {"number": "***"}, "of": ["x"]} for n in range(50)
    ]
    without = [record._replace(value=None) for record in seen]
    assert without == [record._replace(value=None) for record in stored], "nothing else has changed"


@for_each(
    [
        (b'{"card":{"number":1},"card":5}', b'{"card":5}'),
        (b'{"card":{"number":1,"number":2}}', b'{"card":{"number":"***"}}'),
        (b'{"card":{"n\\u0075mber":1}}', b'{"card":{"number":"***"}}'),
        ('{"card":{"number":1}}'.encode("utf-16"), b'{"card":{"number":"***"}}'),
        (
            b'{"card":[{"number":1},{"number":2}],"x":"\xc3\xa9"}',
            b'{"card":[{"number":"***"},{"number":"***"}],"x":"\xc3\xa9"}',
        ),
        (b'{"card":{"number":1},"n":' + b"1" * 5000 + b"}", None),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"card":{"number":1}}', None),
        (b'{"card": {"other": 1.10}}', b'{"card": {"other": 1.10}}'),
        (b"\xff", b"\xff"),
        (b"", b""),
    ]
)
def test_a_field_cannot_hide_from_its_mask(value: bytes, expected: bytes | None) -> None:
    records = encode_batch([(None, value, (), 1)])
    hook = masked("t", "card.number")
    asked = ClientRequest(1, 11, 11, Client("10.0.0.7", 1, "", "", "", 1), lambda: None)
    assert hook.on_batches is not None
    changed = changed_records(records, asked, "t", 0, [hook.on_batches])
    [record] = decode_batch(changed, 0, len(changed), "t", 0)
    assert record.value == expected


def test_masks_are_for_chosen_clients_only(cluster: KafkaCluster) -> None:
    hook = masked("some", "secret", mask=None, for_client=lambda client: client.client_id != "trusted")
    with Gateway(to=cluster.bootstrap_servers, hooks=[hook]) as gateway:
        with Producer(bootstrap_servers=gateway.bootstrap_servers) as producer:
            producer.send("some", b'[{"secret":1},{"open":2}]')
            producer.flush()
        [one] = values(gateway.bootstrap_servers, "some", 1)
        [other] = values(gateway.bootstrap_servers, "some", 1, client_id="trusted")
    assert one.value == b'[{"secret":null},{"open":2}]'
    assert other.value == b'[{"secret":1},{"open":2}]'


def test_records_are_left_out_for_readers_and_offsets_stay(cluster: KafkaCluster) -> None:
    import pyarrow.compute as pc

    with Gateway(to=cluster.bootstrap_servers) as gateway:

        @gateway.on_batches("Fetch")
        def odd_only(batch: Batch) -> Any:
            if batch.topic != "thin":
                return None
            return batch.table.filter(pc.equal(pc.bit_wise_and(batch.table.column("offset"), 1), 1))

        with Producer(bootstrap_servers=gateway.bootstrap_servers, linger_ms=1) as producer:
            for number in range(20):
                producer.send("thin", b"%d" % number, partition=0)
                if number % 7 == 0:
                    producer.flush()
        seen = values(gateway.bootstrap_servers, "thin", 10)
    assert [(each.offset, int(each.value)) for each in seen] == [(n, n) for n in range(1, 20, 2)]


def test_transactions_and_order_survive_changed_records(cluster: KafkaCluster) -> None:
    with Gateway(to=cluster.bootstrap_servers, hooks=[address_header(), masked("tx", "x")]) as gateway:
        with Producer(bootstrap_servers=gateway.bootstrap_servers, transactional_id="hooked") as producer:
            for number in range(6):
                producer.begin_transaction()
                producer.send("tx", json.dumps({"x": 1, "n": number}).encode(), partition=0)
                if number % 2:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
        options = {"isolation_level": "read_committed"}
        seen = values(gateway.bootstrap_servers, "tx", 3, **options)
    assert [json.loads(each.value) for each in seen] == [{"x": "***", "n": n} for n in (0, 2, 4)]
    assert {tuple(each.headers) for each in seen} == {(("client-address", b"127.0.0.1"),)}


def test_a_header_of_the_clients_own_does_not_pass_for_the_address(cluster: KafkaCluster) -> None:
    with Gateway(to=cluster.bootstrap_servers, hooks=[address_header(topics="from")]) as gateway:
        with Producer(bootstrap_servers=gateway.bootstrap_servers) as producer:
            forged = [("client-address", b"10.9.9.9"), ("other", None)]
            producer.send("from", b"v", headers=forged)
            producer.send("elsewhere", b"v", headers=forged)
            producer.flush()
        [one] = values(cluster.bootstrap_servers, "from", 1)
        [other] = values(cluster.bootstrap_servers, "elsewhere", 1)
    assert list(one.headers) == [("other", None), ("client-address", b"127.0.0.1")]
    assert list(other.headers) == forged


EVENT = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"made")]


def test_only_events_get_into_a_topic(cluster: KafkaCluster) -> None:
    with (
        Gateway(to=cluster.bootstrap_servers, hooks=[checked_events("events", types=["made"])]) as gateway,
        Producer(bootstrap_servers=gateway.bootstrap_servers, enable_idempotence=False) as producer,
    ):
        good = producer.send("events", b"{}", headers=EVENT, partition=0)
        bad = producer.send("events", b"{}", partition=1)
        other = producer.send("events", b"{}", headers=[*EVENT[:3], ("ce_type", b"sold")], partition=2)
        free = producer.send("anything", b"{}")
        producer.flush()
        assert good.result(10).offset == 0
        assert free.result(10).offset == 0
        for wrong, text in ((bad, "no CloudEvent"), (other, "type sold")):
            with pytest.raises(KafkaError, match=text) as caught:
                wrong.result(10)
            assert caught.value.code == 87
    assert len(values(cluster.bootstrap_servers, "events", 1)) == 1


def test_topics_have_other_names_for_clients(cluster: KafkaCluster) -> None:
    with (
        Gateway(to=cluster.bootstrap_servers, hooks=[renamed_topics({"orders": "orders-v2"})]) as gateway,
        Admin(bootstrap_servers=cluster.bootstrap_servers) as behind,
        Admin(bootstrap_servers=gateway.bootstrap_servers) as before,
    ):
        behind.create_topics([NewTopic("orders", 1), NewTopic("orders-v2", 3), NewTopic("plain", 1)])
        produce(gateway.bootstrap_servers, "orders", 30)
        assert consume(gateway.bootstrap_servers, "orders", 30) == list(range(30))
        listed = set(before.list_topics())
        assert {"orders", "plain"} <= listed
        assert "orders-v2" not in listed
    assert consume(cluster.bootstrap_servers, "orders-v2", 30, group_id="behind") == list(range(30))


def test_tenants_have_topics_and_groups_of_their_own(cluster: KafkaCluster) -> None:
    def prefix(request: ClientRequest) -> str:
        return f"{request.client.client_id}."

    with Gateway(to=cluster.bootstrap_servers, hooks=[tenant(prefix)]) as gateway:
        for name, first in (("blue", 0), ("red", 100)):
            with Admin(bootstrap_servers=gateway.bootstrap_servers, client_id=name) as admin:
                admin.create_topics([NewTopic("t", 3)])
            with Producer(
                bootstrap_servers=gateway.bootstrap_servers, client_id=name, transactional_id="tx"
            ) as producer:
                producer.begin_transaction()
                for number in range(first, first + 9):
                    producer.send("t", b"%d" % number, partition=number % 3)
                producer.commit_transaction()
        for name, first in (("blue", 0), ("red", 100)):
            options = {"client_id": name, "group_id": "g"}
            assert consume(gateway.bootstrap_servers, "t", 9, **options) == list(range(first, first + 9))
            with Admin(bootstrap_servers=gateway.bootstrap_servers, client_id=name) as admin:
                assert set(admin.list_topics()) == {"t"}
                assert {each.group_id for each in admin.list_groups()} == {"g"}
    with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        assert {"blue.t", "red.t"} <= set(admin.list_topics())
        assert {"blue.g", "red.g"} <= {each.group_id for each in admin.list_groups()}


def test_an_old_clients_requests_go_through_hooks_as_the_cluster_gets_them() -> None:
    seen: list[tuple[str, int, int]] = []

    def look(request: ClientRequest) -> None:
        seen.append((request.api, request.version, request.client_version))

    with (
        KafkaBroker(as_version="4.3", num_partitions=1) as broker,
        Gateway(
            to=broker.bootstrap_servers,
            hooks=[Hook(("Produce",), on_request=look), address_header()],
        ) as gateway,
        WireClient(gateway.port) as client,
    ):
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("old", 1)])
        part = PartitionProduceData(index=0, records=encode_message_set([(b"k", b"v", -1)], 0))
        topic = TopicProduceData(name="old", partition_data=[part])
        message = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
        answer = client.ask(message, 0)
        assert answer.responses[0].partition_responses[0].error_code == 0
        [record] = values(broker.bootstrap_servers, "old", 1)
        assert list(record.headers) == [("client-address", b"127.0.0.1")]
    [(api, version, client_version)] = seen
    assert (api, client_version) == ("Produce", 0)
    assert version >= 3


def test_hooks_are_added_while_it_runs() -> None:
    with KafkaBroker() as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        produce(gateway.bootstrap_servers, "t", 1)
        asked = threading.Event()

        @gateway.on_request("CreateTopics")
        def no_topics(request: ClientRequest) -> None:
            asked.set()
            raise Refused("POLICY_VIOLATION", "topics are made elsewhere")

        with (
            Admin(bootstrap_servers=gateway.bootstrap_servers) as admin,
            pytest.raises(KafkaError, match="topics are made elsewhere"),
        ):
            admin.create_topics([NewTopic("u", 1)])
        assert asked.is_set()


def test_records_of_a_topic_without_a_name_do_not_pass() -> None:
    """A hook for a topic cannot check records with a topic id that no broker can resolve."""
    versions = {**HEARTBEATS, 3: (0, 13)}
    here = World(hooks=Hooks([masked("cards", "number")]), versions=versions)
    here.client_sends(request(FetchRequest(max_wait_ms=1, min_bytes=1), 13, 1))
    assert here.broker.taken()
    part = PartitionData(partition_index=0, records=encode_batch([(None, b'{"number":1}', (), 1)]))
    topic = FetchableTopicResponse(topic_id=b"t" * 16, partitions=[part])
    here.broker_sends(response(FetchResponse(responses=[topic]), 13, 1))
    assert asked_of(here.broker.taken()) == [(3, 12, 1)], "it is asked for"
    unknown = MetadataResponseTopic(topic_id=b"t" * 16, name=None, error_code=100)
    here.broker_sends(response(MetadataResponse(topics=[unknown]), 12, 1))
    [(_, answer)] = answers_of(here.client.taken(), 1, 13)
    part = answer.responses[0].partitions[0]
    assert (part.error_code, bytes(part.records or b"")) == (100, b"")


def test_records_of_share_groups_are_masked_as_well() -> None:
    hook = masked("cards", "number")
    assert hook.on_batches is not None
    records = encode_batch([(None, b'{"number":1}', (), 1)])
    part = SharePartitionData(partition_index=0, records=records)
    topic = ShareFetchableTopicResponse(topic_id=b"t" * 16, partitions=[part])
    answer = ShareFetchResponse(responses=[topic])
    asked = ClientRequest(78, 1, 1, Client("10.0.0.7", 1, "", "", "", 1), lambda: None)
    changed_responses(asked, answer, {b"t" * 16: "cards"}, [hook.on_batches], print)
    assert b'{"number":"***"}' in bytes(part.records)
    assert b'"number":1' not in bytes(part.records)


def test_messages_of_older_formats_are_not_passed_unmasked() -> None:
    here = World(hooks=Hooks([masked("cards", "number")]), versions={**HEARTBEATS, 1: (0, 3)})
    here.client_sends(request(FetchRequest(max_wait_ms=1, min_bytes=1), 2, 1))
    part = PartitionData(partition_index=0, records=encode_message_set([(None, b'{"number":1}', -1)], 0))
    topic = FetchableTopicResponse(topic="cards", partitions=[part])
    here.broker_sends(response(FetchResponse(responses=[topic]), 2, 1))
    [(_, answer)] = answers_of(here.client.taken(), 1, 2)
    part = answer.responses[0].partitions[0]
    assert (part.error_code, bytes(part.records or b"")) == (43, b"")
