"""Tests of the bytes that pass through a gateway's relay, without sockets."""

from __future__ import annotations

import itertools
import random
from collections.abc import Generator, Mapping
from typing import Any

import pytest

from for_each import for_each
from gateway.relays import ADVERTISED, KAFKA_4, World, answers_of, asked_of, frames_of, request, response
from penstock.errors import NetworkError
from penstock.gateway import addresses, nodes
from penstock.gateway.calls import NodeCall
from penstock.gateway.contracts import Pause
from penstock.gateway.limits import DECODED_FETCH_BYTES, DUE_MAX, INLINE_BYTES_MAX, Limits
from penstock.gateway.versions import UntranslatableError
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import decode_request_header
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.list_offsets_request import ListOffsetsRequest
from penstock.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.produce_response import (
    NodeEndpoint as ProduceEndpoint,
)
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

LIST = request(ListOffsetsRequest(replica_id=-1), 5, 7)
LISTED = response(
    ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="t", partitions=[ListOffsetsPartitionResponse()])]
    ),
    5,
    7,
)


def produce(acks: int = -1, size: int = 100, transactional_id: str | None = None) -> ProduceRequest:
    part = PartitionProduceData(index=0, records=bytes(size))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="t", partition_data=[part])],
    )


@pytest.mark.parametrize("split", [0, 1, 3, 11, 50])
def test_what_both_speak_passes_byte_by_byte(split: int) -> None:
    world = World()
    world.client_sends(LIST, LIST, LIST, split=split)
    assert world.broker.taken() == LIST * 3
    world.broker_sends(LISTED, LISTED, LISTED, split=split)
    assert world.client.taken() == LISTED * 3
    assert world.held == 0
    assert not world.ends


def test_a_long_frame_is_not_held() -> None:
    world = World(versions=KAFKA_4 | {0: (3, 9)})
    sent = request(produce(size=1_000_000), 9, 5)
    world.client_sends(sent[:500_000])
    assert world.broker.taken() == sent[:500_000]
    assert world.held == 0
    world.client_sends(sent[500_000:])
    assert world.broker.taken() == sent[500_000:]


@for_each([3, 8, 9, 12, 13])
@pytest.mark.parametrize("client_id", [None, "", "device", "d" * 300])
@pytest.mark.parametrize("split", [0, 1, 13])
def test_a_produce_without_acknowledgement_is_owed_nothing(
    version: int, client_id: str | None, split: int
) -> None:
    world = World()
    for transactional_id in (None, "", "tx" * 200):
        world.client_sends(request(produce(0, 30, transactional_id), version, 1, client_id), split=split)
        assert world.relay.is_stuck
        world.client_sends(request(produce(1, 30, transactional_id), version, 2, client_id), split=split)
        assert not world.relay.is_stuck
        sent = response(ProduceResponse(), version, 2)
        world.broker_sends(sent)
        assert world.client.taken() == sent
    assert not world.ends


def metadata(port: int = 9092) -> MetadataResponse:
    parts = [MetadataResponsePartition(partition_index=0, leader_id=2, replica_nodes=[1, 2], isr_nodes=[2])]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=1, host="kafka-1", port=port, rack="a"),
            MetadataResponseBroker(node_id=2, host="kafka-2", port=port),
        ],
        cluster_id="c",
        controller_id=1,
        topics=[MetadataResponseTopic(name="t", partitions=parts)],
    )


@for_each(range(14))
@pytest.mark.parametrize("split", [0, 7])
def test_metadata_name_the_ports_of_the_gateway(version: int, split: int) -> None:
    world = World()
    world.client_sends(request(MetadataRequest(topics=[]), version, 3))
    world.broker_sends(response(metadata(), version, 3), LISTED[:0], split=split)
    [(correlation_id, answer)] = answers_of(world.client.taken(), 3, version)
    assert correlation_id == 3
    assert [(each.node_id, each.host, each.port) for each in answer.brokers] == [
        (1, ADVERTISED, 20_001),
        (2, ADVERTISED, 20_002),
    ]
    assert answer.topics[0].partitions[0].leader_id == 2
    assert world.nodes.by_id[2].address == ("kafka-2", 9092)
    assert world.held == 0


def test_equal_metadata_are_decoded_once_for_as_long_as_no_broker_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[int] = []
    real = addresses.decode_response

    def decode(body: memoryview, response_type: Any, version: int) -> Any:
        decoded.append(version)
        return real(body, response_type, version)

    monkeypatch.setattr(addresses, "decode_response", decode)
    world = World()

    def asked(message: MetadataResponse, version: int = 9) -> list[tuple[str, int]]:
        number = next(numbers)
        world.client_sends(request(MetadataRequest(topics=[]), version, number))
        world.broker_sends(response(message, version, number))
        [(correlation_id, answer)] = answers_of(world.client.taken(), 3, version)
        assert correlation_id == number
        assert answer.topics[0].name == "t"
        return [(each.host, each.port) for each in answer.brokers]

    numbers = itertools.count(5)
    ports = [(ADVERTISED, 20_001), (ADVERTISED, 20_002)]
    assert [asked(metadata()) for _ in range(5)] == [ports] * 5
    assert decoded == [9, 9]  # the first answer made ports
    assert asked(metadata(), 8) == ports
    assert asked(metadata(9093)) == ports  # both brokers have moved
    assert world.nodes.by_id[2].address == ("kafka-2", 9093)
    assert asked(metadata()) == ports
    assert world.nodes.by_id[2].address == ("kafka-2", 9092)
    assert decoded == [9, 9, 8, 9, 9]


def test_answers_that_are_kept_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "ANSWERS_BYTES_MAX", 100)
    answers = nodes.MovedAnswers()
    answers.keep(1, "h", b"a" * 20, b"b" * 30)
    answers.keep(1, "h", b"c" * 20, b"d" * 30)
    assert answers.of(1, "h", b"a" * 20) == b"b" * 30
    assert answers.of(1, "other", b"a" * 20) is None
    answers.keep(1, "h", b"e" * 20, b"f" * 30)
    assert answers.of(1, "h", b"a" * 20) is None
    assert answers.of(1, "h", b"e" * 20) == b"f" * 30
    answers.keep(1, "h", b"g" * 60, b"h" * 60)
    assert answers.of(1, "h", b"g" * 60) is None


@for_each(range(7))
def test_coordinators_are_found_at_ports_of_the_gateway(version: int) -> None:
    world = World()
    world.client_sends(
        request(
            FindCoordinatorRequest(key="g" * (version < 4), coordinator_keys=["g"] * (version > 3)), version
        )
    )
    if version > 3:
        found = [Coordinator(key="g", node_id=4, host="kafka-4", port=1), Coordinator(key="h", error_code=15)]
        world.broker_sends(response(FindCoordinatorResponse(coordinators=found), version))
        first, second = answers_of(world.client.taken(), 10, version)[0][1].coordinators
        assert (second.host, second.error_code) == ("", 15)
    else:
        world.broker_sends(response(FindCoordinatorResponse(node_id=4, host="kafka-4", port=1), version))
        first = answers_of(world.client.taken(), 10, version)[0][1]
    assert (first.node_id, first.host, first.port) == (4, ADVERTISED, 20_004)


def test_a_described_cluster_has_ports_of_the_gateway_but_for_its_controllers() -> None:
    for endpoint_type, host in ((1, ADVERTISED), (2, "kafka-3")):
        world = World()
        world.client_sends(request(DescribeClusterRequest(endpoint_type=endpoint_type), 1))
        brokers = [DescribeClusterBroker(broker_id=3, host="kafka-3", port=9)]
        sent = DescribeClusterResponse(cluster_id="c", endpoint_type=endpoint_type, brokers=brokers)
        world.broker_sends(response(sent, 1))
        assert answers_of(world.client.taken(), 60, 1)[0][1].brokers[0].host == host


@for_each([10, 13])
def test_endpoints_of_new_leaders_in_produce(version: int) -> None:
    world = World()
    world.client_sends(request(produce(), version, 1), request(produce(), version, 2))
    part = PartitionProduceResponse(index=0, error_code=6)
    topics = [TopicProduceResponse(name="t" if version < 13 else "", partition_responses=[part])]
    plain = response(ProduceResponse(responses=topics), version, 1)
    world.broker_sends(plain)
    assert world.client.taken() == plain
    ends = [ProduceEndpoint(node_id=5, host="kafka-5", port=9)]
    world.broker_sends(response(ProduceResponse(responses=topics, node_endpoints=ends), version, 2))
    [end] = answers_of(world.client.taken(), 0, version)[0][1].node_endpoints
    assert (end.node_id, end.host, end.port) == (5, ADVERTISED, 20_005)


def fetched(size: int, partitions: int = 1, endpoints: int = 1) -> FetchResponse:
    ends = [NodeEndpoint(node_id=n, host=f"kafka-{n}", port=9, rack="r") for n in range(endpoints)]
    parts = [PartitionData(partition_index=p, error_code=6, records=bytes(size)) for p in range(partitions)]
    topics = [FetchableTopicResponse(topic_id=bytes(range(16)), partitions=parts) for _ in range(2)]
    return FetchResponse(responses=topics, node_endpoints=ends)


@for_each([16, 17, 18])
def test_endpoints_of_new_leaders_in_a_short_fetch(version: int) -> None:
    world = World()
    world.client_sends(request(FetchRequest(), version))
    world.broker_sends(response(fetched(100), version))
    answer = answers_of(world.client.taken(), 1, version)[0][1]
    assert [(end.node_id, end.host, end.port) for end in answer.node_endpoints] == [(0, ADVERTISED, 20_000)]


@for_each(
    [
        (split, partitions, endpoints)
        for endpoints in [0, 1, 3]
        for partitions in [1, 40]
        for split in [0, 1, 64, 9999]
    ]
)
def test_a_long_fetch_passes_as_it_arrives_and_hides_endpoints(
    split: int, partitions: int, endpoints: int
) -> None:
    world = World()
    sent = fetched(DECODED_FETCH_BYTES // partitions, partitions, endpoints)
    for part in sent.responses[0].partitions[::3]:
        part.current_leader.leader_id = 1
        part.unknown_tags = {9: b"x" * 300}
    world.client_sends(request(FetchRequest(), 17, 1), LIST)
    data = response(sent, 17, 1)
    world.broker_sends(data[:1000], split=split)
    assert len(world.client.sent) >= 900
    world.broker_sends(data[1000:], LISTED, split=split)
    got = world.client.taken()
    assert got.endswith(LISTED)
    answer = answers_of(got[: len(data)], 1, 17)[0][1]
    assert answer.node_endpoints == []
    assert answer.responses == sent.responses
    assert (got[: len(data)] == data) is (endpoints == 0)
    assert world.held == 0
    assert not world.ends


def test_long_fetches_that_cannot_be_walked_over_end_the_connection() -> None:
    dice = random.Random(5)
    data = response(fetched(DECODED_FETCH_BYTES), 17)
    ended = 0
    for _ in range(300):
        world = World()
        world.client_sends(request(FetchRequest(), 17))
        damaged = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            damaged[dice.randrange(8, 80)] = dice.randrange(256)
        world.broker_sends(bytes(damaged), split=30_000)
        ended += bool(world.ends)
        assert not world.failures
    assert ended > 20


# --- versions


class Shifted:
    """A fake translation that answers ListOffsets 0 with three calls of newer versions.

    The second call goes to another broker.
    """

    Refused = UntranslatableError

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.calls = [
            NodeCall(2, 5, ListOffsetsRequest()),
            NodeCall(2, 5, ListOffsetsRequest(), 8),
            NodeCall(2, 6, ListOffsetsRequest()),
        ]
        self.refuses_late = False

    def spoken(self, advertised: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        return {key: versions for key, versions in advertised.items() if key != 2000}

    def offered(self, upstream: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        return {**upstream, 2: (0, upstream[2][1]), 0: (0, 13)}

    def translate(
        self, api_key: int, version: int, request: Any, upstream: Mapping[int, tuple[int, int]]
    ) -> Generator[NodeCall, Any, Any]:
        if (api_key, version) != (2, 0):
            raise UntranslatableError("nothing else is translated")
        return self._steps()

    def _steps(self) -> Generator[NodeCall, Any, Any]:
        for call in self.calls:
            self.answers.append((yield call))
        if self.refuses_late:
            raise UntranslatableError("after all")
        parts = [ListOffsetsPartitionResponse(old_style_offsets=[4, 2])]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=parts)])


OLD_LIST = request(ListOffsetsRequest(replica_id=-1), 0, 9)


def test_what_is_translated_keeps_its_place() -> None:
    translation = Shifted()
    world = World(translation=translation)
    world.client_sends(LIST, OLD_LIST, LIST)
    assert asked_of(world.broker.taken()) == [(2, 5, 7), (2, 5, 9)]
    assert world.client.paused == Pause.HELD
    world.broker_sends(LISTED)
    assert world.client.taken() == LISTED
    world.broker_sends(response(ListOffsetsResponse(), 5, 9))
    assert [call.node_id for call in world.calls] == [8]
    assert world.broker.taken() == b""
    world.relay.answer_call(ListOffsetsResponse(throttle_time_ms=3))
    assert asked_of(world.broker.taken()) == [(2, 6, 9)]
    assert world.client.taken() == b""
    world.broker_sends(response(ListOffsetsResponse(), 6, 9))
    [(correlation_id, answer)] = answers_of(world.client.taken(), 2, 0)
    assert correlation_id == 9
    assert answer.topics[0].partitions[0].old_style_offsets == [4, 2]
    assert [each.throttle_time_ms for each in translation.answers] == [0, 3, 0]
    assert world.broker.taken() == LIST
    assert not world.client.paused
    assert world.held == 0


def test_a_client_is_read_again_when_the_last_request_that_has_waited_is_answered() -> None:
    world = World(translation=Shifted(), attaches=False)
    world.client_sends(OLD_LIST)
    assert world.client.paused == Pause.HELD
    world.connect()
    assert world.client.paused == Pause.HELD, "it is translated"
    for version in (5, 6):
        world.broker_sends(response(ListOffsetsResponse(), version, 9))
        world.relay.answer_call(ListOffsetsResponse())
    assert len(answers_of(world.client.taken(), 2, 0)) == 1
    assert not world.client.paused


def old_produce(size: int) -> tuple[Shifted, bytes]:
    """Return a translation of Produce 1 that makes one call, and the bytes of a Produce 1 request."""
    translation = Shifted()

    def steps() -> Generator[NodeCall, Any, Any]:
        yield NodeCall(2, 5, ListOffsetsRequest())
        return ProduceResponse(throttle_time_ms=5)

    translation.translate = lambda *arguments: steps()  # type: ignore[method-assign]
    return translation, request(produce(size=size), 1, 4)


def test_long_frames_are_translated_beside_the_event_loop() -> None:
    translation, asked = old_produce(INLINE_BYTES_MAX)
    world = World(translation=translation)
    world.client_sends(asked, LIST)
    assert world.broker.taken() == b""
    assert world.held >= INLINE_BYTES_MAX
    world.work()
    assert asked_of(world.broker.taken()) == [(2, 5, 4)]
    topics = [ListOffsetsTopicResponse(name="t" * 1000) for _ in range(80)]
    world.broker_sends(response(ListOffsetsResponse(topics=topics), 5, 4))
    assert world.client.taken() == b""
    assert world.held > 2 * INLINE_BYTES_MAX
    world.work()
    assert answers_of(world.client.taken(), 0, 1)[0][1].throttle_time_ms == 5
    assert world.broker.taken() == LIST
    assert world.held == 0
    assert not world.client.paused


def test_a_client_that_goes_while_its_request_is_translated_leaves_nothing() -> None:
    translation, asked = old_produce(INLINE_BYTES_MAX)
    world = World(translation=translation)
    world.client_sends(asked)
    world.relay.client_lost()
    world.work()
    assert world.broker.is_closed
    assert world.broker.taken() == b""
    assert world.held == 0


def test_a_call_without_acknowledgement_is_not_waited_for() -> None:
    translation = Shifted()
    translation.calls = [NodeCall(0, 9, produce(0)), NodeCall(0, 9, produce(0))]
    world = World(translation=translation)
    world.client_sends(OLD_LIST)
    assert asked_of(world.broker.taken()) == [(0, 9, 9), (0, 9, 9)]
    assert len(answers_of(world.client.taken(), 2, 0)) == 1
    assert translation.answers == [None, None]


def test_what_is_refused_gets_an_error_in_its_place() -> None:
    world = World(translation=Shifted())
    world.client_sends(LIST, request(produce(), 2, 4), LIST)
    assert world.broker.taken() == LIST * 2
    assert world.client.taken() == b""
    world.broker_sends(LISTED, LISTED)
    first, second, third = frames_of(world.client.taken())
    assert first == third == LISTED[4:]
    [(_, answer)] = answers_of(len(second).to_bytes(4, "big") + second, 0, 2)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert world.ends == ["Produce 2 is refused: nothing else is translated"]


def test_a_refusal_after_calls_is_an_error_too() -> None:
    translation = Shifted()
    translation.calls, translation.refuses_late = [NodeCall(2, 5, ListOffsetsRequest())], True
    world = World(translation=translation)
    asked = MetadataRequest(topics=[])
    world.client_sends(OLD_LIST, request(asked, 1, 2))
    world.broker_sends(response(ListOffsetsResponse(), 5, 9))
    assert not world.client.is_closed or "after all" in world.ends[-1]


@for_each(range(5))
def test_clients_are_offered_what_the_translation_adds(version: int) -> None:
    world = World(translation=Shifted())
    asked = ApiVersionsRequest(client_software_name="old-device", client_software_version="2")
    world.client_sends(request(asked, version))
    listed = [
        ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in KAFKA_4.items()
    ]
    listed.append(ApiVersion(api_key=2000, min_version=0, max_version=1))
    world.broker_sends(response(ApiVersionsResponse(api_keys=listed), version))
    answer = answers_of(world.client.taken(), 18, version)[0][1]
    offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert offered == {**KAFKA_4, 2: (0, 11), 0: (0, 13)}
    [row] = world.counters.rows(KAFKA_4)
    software = ("old-device", "2", "") if version >= 3 else ("", "", "device")
    assert row[:6] == (*software, "10.0.0.7", "ApiVersions", version)
    assert (row.requests, row.is_spoken) == (1, True)


def test_an_unknown_version_of_api_versions_is_answered_with_error_35() -> None:
    world = World()
    world.client_sends(
        request(ApiVersionsRequest(), 4)[:6] + b"\0\x63" + request(ApiVersionsRequest(), 4)[8:]
    )
    [(correlation_id, answer)] = answers_of(world.client.taken(), 18, 0)
    assert (correlation_id, answer.error_code) == (1, ErrorCode.UNSUPPORTED_VERSION)
    assert world.broker.taken() == b""


def test_a_broker_without_api_versions_gets_none_and_clients_do() -> None:
    world = World(versions={0: (0, 0), 1: (0, 0), 3: (0, 0)})
    world.client_sends(request(ApiVersionsRequest(), 0))
    answer = answers_of(world.client.taken(), 18, 0)[0][1]
    assert [each.api_key for each in answer.api_keys] == [0, 1, 3]
    assert answer.error_code == 35


def test_versions_that_nobody_has_end_the_connection() -> None:
    for head in (b"\x03\xe8\0\0", b"\0\2\0\x63", b"\xff\xff\0\0"):
        world = World()
        world.client_sends(b"\0\0\0\x0a" + head + bytes(6))
        assert world.client.is_closed
        assert len(world.ends) == 1


# --- logins


def test_logins_of_the_client_pass() -> None:
    world = World()
    world.client_sends(request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1))
    world.broker_sends(response(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1, 1))
    world.client_sends(request(SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), 2, 2))
    world.broker_sends(response(SaslAuthenticateResponse(), 2, 2))
    assert len(frames_of(world.client.taken())) == 2
    assert len(frames_of(world.broker.taken())) == 2
    assert world.relay.is_logged_in
    world.relay.upstream_lost("gone")
    assert world.client.is_closed


def token(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("split", [0, 1, 5])
def test_tokens_without_headers_pass(split: int) -> None:
    world = World()
    handshake = request(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0, 1)
    world.client_sends(handshake, split=split)
    world.broker_sends(response(SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), 0, 1), split=split)
    tokens = [token(b"n,,n=u,r=abc"), token(b"c=biws,r=abc,p=xyz"), token(b"")]
    for each in tokens:
        world.client_sends(each, split=split)
        world.broker_sends(token(b"server"), split=split)
    world.client_sends(token(b"silent at the end"), split=split)
    world.client_sends(request(MetadataRequest(topics=[]), 1, 5), split=split)
    world.broker_sends(response(metadata(), 1, 5), split=split)
    got = frames_of(world.client.taken())
    assert got[1:4] == [b"server"] * 3
    assert ADVERTISED.encode() in got[4]
    assert world.broker.taken().startswith(handshake + b"".join(tokens))
    assert not world.ends


def test_a_kerberos_token_of_0_9_comes_first() -> None:
    world = World()
    world.client_sends(token(b"\x60\x82hello there"))
    world.broker_sends(token(b"\x60\x82server"))
    assert world.broker.taken() == token(b"\x60\x82hello there")
    assert world.client.taken() == token(b"\x60\x82server")
    world.client_sends(LIST)
    world.broker_sends(LISTED)
    assert world.client.taken() == LISTED


def test_a_refused_handshake_is_followed_by_requests() -> None:
    world = World()
    world.client_sends(request(SaslHandshakeRequest(mechanism="X"), 0, 1))
    world.broker_sends(response(SaslHandshakeResponse(error_code=33), 0, 1))
    world.client_sends(LIST)
    world.broker_sends(LISTED)
    assert world.client.taken().endswith(LISTED)


def test_logins_are_refused_where_the_gateway_has_an_account() -> None:
    world = World(has_account=True)
    world.client_sends(
        request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1),
        request(SaslAuthenticateRequest(auth_bytes=b""), 2, 2),
    )
    assert world.broker.taken() == b""
    first, second = frames_of(world.client.taken())
    assert answers_of(token(first), 17, 1)[0][1].error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answers_of(token(second), 36, 2)[0][1].error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_credentials_are_shown_again_between_requests() -> None:
    world = World()

    def steps() -> Generator[NodeCall, Any, None]:
        answer = yield NodeCall(17, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        assert isinstance(answer, SaslHandshakeResponse)
        yield NodeCall(36, 2, SaslAuthenticateRequest(auth_bytes=b"x"))

    world.client_sends(LIST[:20])
    assert not world.relay.reauthenticate(steps())
    world.client_sends(LIST[20:])
    assert world.relay.reauthenticate(steps())
    world.client_sends(LIST)
    assert asked_of(world.broker.taken()) == [(2, 5, 7), (17, 1, 0)]
    world.broker_sends(LISTED, response(SaslHandshakeResponse(), 1, 0))
    assert asked_of(world.broker.taken()) == [(36, 2, 0)]
    world.broker_sends(response(SaslAuthenticateResponse(), 2, 0))
    assert world.broker.taken() == LIST
    world.broker_sends(LISTED)
    assert world.client.taken() == LISTED * 2


# --- brokers that are away


def test_requests_wait_for_the_connection_to_a_broker() -> None:
    world = World(attaches=False)
    world.client_sends(LIST)
    world.client_sends(LIST[:9])
    assert world.client.paused == Pause.HELD
    assert world.attempts == 1
    world.connect()
    assert world.broker.taken() == LIST
    assert not world.client.paused
    world.client_sends(LIST[9:])
    assert world.broker.taken() == LIST


def test_every_request_has_a_retriable_error_while_no_broker_is_there() -> None:
    world = World(attaches=False)
    world.learn(1, 2)
    asked = [FetchTopic(topic="t", partitions=[FetchPartition(partition=3)])]
    world.client_sends(request(produce(), 9, 1))
    world.relay.unreachable(NetworkError("refused"))
    world.client_sends(request(FetchRequest(topics=asked), 11, 2))
    world.relay.unreachable(NetworkError("refused"))
    world.client_sends(request(FetchRequest(session_id=5, session_epoch=2), 11, 3))
    world.relay.unreachable(NetworkError("refused"))
    world.client_sends(request(FindCoordinatorRequest(coordinator_keys=["g"]), 4, 4))
    world.relay.unreachable(NetworkError("refused"))
    world.client_sends(request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9, 5))
    world.relay.unreachable(NetworkError("refused"))
    produced, fetch, session, coordinator, topics = map(token, frames_of(world.client.taken()))
    part = answers_of(produced, 0, 9)[0][1].responses[0].partition_responses[0]
    assert (part.index, part.error_code, part.base_offset) == (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    part = answers_of(fetch, 1, 11)[0][1].responses[0].partitions[0]
    assert (part.partition_index, part.error_code) == (3, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answers_of(session, 1, 11)[0][1].error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert answers_of(coordinator, 10, 4)[0][1].coordinators[0].error_code == 15
    answer = answers_of(topics, 3, 9)[0][1]
    assert [each.port for each in answer.brokers] == [20_001, 20_002]
    assert [(each.name, each.error_code) for each in answer.topics] == [("t", ErrorCode.LEADER_NOT_AVAILABLE)]
    assert not world.client.is_closed
    assert world.held == 0


def test_where_the_protocol_has_no_place_for_an_error_the_connection_ends() -> None:
    for sent in (
        request(produce(0), 9, 1),
        request(MetadataRequest(topics=None), 9, 1),
        request(ApiVersionsRequest(), 0, 1),
    ):
        world = World(attaches=False)
        world.client_sends(sent)
        world.relay.unreachable(NetworkError("refused"))
        assert world.client.is_closed


def test_versions_are_offered_while_no_broker_is_there_once_there_was_one() -> None:
    world = World(attaches=False)
    world.last_routes = World().client.routes
    world.client_sends(request(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3))
    world.relay.unreachable(NetworkError("refused"))
    assert len(answers_of(world.client.taken(), 18, 3)[0][1].api_keys) == len(KAFKA_4)


def test_a_long_request_is_answered_when_it_is_whole() -> None:
    world = World(attaches=False)
    sent = request(produce(size=5000), 9, 1)
    world.client_sends(sent[:1000])
    world.relay.unreachable(NetworkError("refused"))
    assert world.client.taken() == b""
    world.client_sends(sent[1000:3000])
    world.client_sends(sent[3000:])
    assert len(answers_of(world.client.taken(), 0, 9)) == 1
    assert world.attempts == 1
    world.client_sends(LIST)
    assert world.attempts == 2


def test_a_broker_that_stands_in_is_left_when_the_other_is_back() -> None:
    world = World(home=1, attaches=False)
    world.client_sends(LIST)
    world.connect(2)
    world.broker_sends(LISTED)
    world.client_sends(LIST)
    assert world.broker.taken() == LIST * 2
    world.back.add(1)
    world.client_sends(LIST)
    assert world.broker.taken() == LIST, "an answer is still due"
    world.broker_sends(LISTED, LISTED)
    stand_in = world.broker
    world.client_sends(LIST)
    assert stand_in.is_closed
    world.connect(1)
    assert world.broker.taken() == LIST
    world.broker_sends(LISTED)
    assert world.client.taken() == LISTED * 4


def test_no_broker_stands_in_where_each_answers_for_itself() -> None:
    world = World(home=1, attaches=False, versions=KAFKA_4 | {16: (0, 5), 35: (1, 4)})
    world.client_sends(LIST)
    world.connect(2)
    world.client_sends(request(ListGroupsRequest(), 4, 8))
    assert world.broker.taken() == LIST
    world.broker_sends(LISTED)
    first, second = frames_of(world.client.taken())
    assert first == LISTED[4:]
    assert answers_of(token(second), 16, 4)[0][1].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.client_sends(request(DescribeLogDirsRequest(), 4))
    assert world.client.is_closed


def test_a_broker_that_goes_between_requests_is_replaced() -> None:
    world = World()
    world.client_sends(LIST)
    world.broker_sends(LISTED)
    world.relay.upstream_lost("gone")
    assert not world.client.is_closed
    world.client_sends(LIST)
    assert world.broker.taken() == LIST
    assert len(world.brokers) == 2


@pytest.mark.parametrize("sent", [LIST, LIST[:30]])
def test_a_broker_that_goes_with_a_request_ends_the_connection(sent: bytes) -> None:
    world = World()
    world.client_sends(sent)
    world.relay.upstream_lost("gone")
    assert world.client.is_closed
    assert world.ends == ["gone"]


# --- limits, and hostile peers


def test_requests_wait_while_too_many_responses_are_due() -> None:
    world = World()
    world.client_sends(*[LIST] * (DUE_MAX + 5))
    assert world.broker.taken() == LIST * DUE_MAX
    assert world.client.paused == Pause.HELD
    world.broker_sends(LISTED)
    assert world.broker.taken() == LIST
    world.broker_sends(*[LISTED] * DUE_MAX)
    assert world.broker.taken() == LIST * 4
    assert not world.client.paused


def test_a_side_that_does_not_read_stops_the_other() -> None:
    world = World()
    world.client_sends(LIST)
    world.relay.client_clogged(True)
    assert world.broker.paused == Pause.CLOGGED
    world.relay.upstream_clogged(True)
    assert world.client.paused == Pause.CLOGGED
    world.relay.client_clogged(False)
    world.relay.upstream_clogged(False)
    assert not world.broker.paused
    assert not world.client.paused


def test_what_has_to_be_decoded_has_a_limit_for_each_and_for_all() -> None:
    for limits in (Limits(frame_bytes_max=5_000), Limits(held_bytes_max=5_000)):
        world = World(translation=Shifted(), limits=limits)
        world.client_sends(request(produce(size=6_000), 2))
        assert world.client.is_closed
        world = World(limits=limits)
        world.client_sends(request(MetadataRequest(topics=[]), 9))
        topics = [MetadataResponseTopic(name="t" * 200) for _ in range(40)]
        world.broker_sends(response(MetadataResponse(topics=topics), 9))
        assert world.client.is_closed
        assert world.held == 0


HOSTILE_RESPONSES = {
    "unasked": (b"", LISTED),
    "another": (LIST, response(ListOffsetsResponse(), 5, 8)),
    "negative": (LIST, b"\xff\xff\xff\xff" + LISTED[4:]),
    "short": (LIST, b"\0\0\0\1" + LISTED[4:]),
    "unreadable": (request(MetadataRequest(topics=[]), 9, 1), b"\0\0\0\x0a\0\0\0\1\0\xff\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("name", HOSTILE_RESPONSES)
def test_a_broker_that_breaks_the_protocol_ends_the_connection(name: str) -> None:
    asked, answer = HOSTILE_RESPONSES[name]
    world = World()
    world.client_sends(LIST)
    world.broker_sends(LISTED)
    if asked:
        world.client_sends(asked)
    world.broker_sends(answer)
    assert world.client.is_closed
    assert world.broker.is_closed
    assert len(world.ends) == 1
    assert not world.failures


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abc",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0" * 4,
        b"\0\0\0\7" * 5,
    ],
)
def test_what_is_no_kafka_ends_before_a_broker_is_asked(sent: bytes) -> None:
    world = World()
    world.client_sends(sent)
    assert world.client.is_closed
    assert world.attempts == 0


def test_random_bytes_harm_nothing_but_their_connection() -> None:
    dice = random.Random(7)
    valid = [
        LIST,
        request(produce(), 9),
        request(ApiVersionsRequest(), 3),
        OLD_LIST,
        request(MetadataRequest(), 1),
    ]
    for _ in range(2000):
        world = World(translation=Shifted())
        data = bytearray(b"".join(dice.choices(valid, k=3)))
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        world.client_sends(bytes(data), split=dice.choice([0, 1, 9]))
        if world.brokers and not world.client.is_closed:
            world.broker_sends(dice.randbytes(40), split=dice.choice([0, 3]))
        world.relay.client_lost()
        assert not world.failures
        assert world.held == 0


def test_an_exception_in_a_translation_ends_one_connection() -> None:
    translation = Shifted()

    class Surprise(Exception):
        pass

    def steps() -> Generator[NodeCall, Any, Any]:
        yield NodeCall(2, 5, ListOffsetsRequest())
        raise Surprise

    translation._steps = steps  # type: ignore[method-assign]
    world = World(translation=translation)
    world.client_sends(OLD_LIST)
    world.broker_sends(response(ListOffsetsResponse(), 5, 9))
    assert world.client.is_closed
    assert world.failures == ["a response for 10.0.0.7:1234"]


def test_counts_are_by_software_or_client_id() -> None:
    world = World()
    world.client_sends(LIST, LIST)
    answers = LISTED * 2
    world.broker_sends(answers)
    sizes = len(LIST) * 2, len(answers)
    assert world.counters.rows(KAFKA_4) == [("", "", "device", "10.0.0.7", "ListOffsets", 5, 2, *sizes, True)]
    assert int(ApiKey.LIST_OFFSETS) == 2


class Conversation:
    """A client and a broker that exchange random messages through a relay, with random interruptions."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        translation = Shifted()
        self.world = World(translation=translation, attaches=False, home=1)
        self.unsent = b""
        self.asked: list[int] = []
        self.arrived = b""
        self.unread = b""

    def ask(self) -> None:
        number = len(self.asked) + 1
        made = self.dice.choice(
            [
                request(ListOffsetsRequest(replica_id=-1), 5, number),
                request(ListOffsetsRequest(replica_id=-1), 0, number),
                request(produce(size=self.dice.randrange(300)), self.dice.choice([9, 12, 13]), number),
                request(produce(), 1, number),
                request(MetadataRequest(topics=[]), self.dice.randrange(13), number),
                request(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3, number),
                request(FetchRequest(), self.dice.choice([4, 11, 17]), number),
            ]
        )
        self.unsent += made
        self.asked.append(number)

    def send(self, size: int) -> None:
        if self.unsent and not self.world.client.paused:
            piece, self.unsent = self.unsent[:size], self.unsent[size:]
            self.world.relay.client_bytes(memoryview(piece))

    def connect(self) -> None:
        relay = self.world.relay
        if relay.upstream is None and relay._is_attaching:
            assert not self.unread, "what was asked of another broker has been answered"
            self.world.connect(self.dice.choice([1, 2]))

    def answer(self, size: int) -> None:
        """Let the broker answer one request, and pass up to `size` bytes of its responses to the relay."""
        if self.world.brokers and self.world.relay.upstream is not None:
            self.arrived += self.world.broker.taken()
            length = int.from_bytes(self.arrived[:4], "big") + 4
            if len(self.arrived) >= 4 and length <= len(self.arrived):
                frame, self.arrived = self.arrived[4:length], self.arrived[length:]
                self.unread += self.made(frame)
            if self.unread and not self.world.broker.paused:
                piece, self.unread = self.unread[:size], self.unread[size:]
                self.world.relay.upstream_bytes(memoryview(bytearray(piece)))

    def made(self, frame: bytes) -> bytes:
        header, _ = decode_request_header(frame)
        key, version, number = header.api_key, header.api_version, header.correlation_id
        if key == 1 and version == 17 and self.dice.random() < 0.3:
            return response(fetched(DECODED_FETCH_BYTES, 1, self.dice.randrange(2)), 17, number)
        if key == 3:
            return response(metadata(), version, number)
        if key == 18:
            listed = [ApiVersion(api_key=k, min_version=v[0], max_version=v[1]) for k, v in KAFKA_4.items()]
            return response(ApiVersionsResponse(api_keys=listed), version, number)
        return response(API_TABLE[key].response(), version, number)

    def answer_call(self) -> None:
        if self.world.calls:
            self.world.calls.pop()
            self.world.relay.answer_call(ListOffsetsResponse())

    def clog(self) -> None:
        is_clogged = self.dice.random() < 0.5
        self.dice.choice([self.world.relay.client_clogged, self.world.relay.upstream_clogged])(is_clogged)

    def step(self) -> None:
        size = self.dice.choice([1, 7, 50, 100_000])
        self.dice.choice(
            [
                self.ask,
                self.connect,
                self.answer_call,
                self.clog,
                lambda: self.send(size),
                lambda: self.answer(size),
            ]
        )()
        self.world.back = {1} if self.dice.random() < 0.5 else set()

    def finish(self) -> None:
        relay = self.world.relay
        for _ in range(10_000):
            relay.client_clogged(False)
            relay.upstream_clogged(False)
            self.connect()
            self.answer_call()
            self.send(100_000)
            self.answer(1 << 20)
            if not (self.unsent or self.unread or relay._due or relay._job or relay._waiting):
                return


@for_each(range(150))
def test_whatever_comes_between_each_request_is_answered_in_its_turn(seed: int) -> None:
    talk = Conversation(seed)
    for _ in range(400):
        talk.step()
    talk.finish()
    world = talk.world
    assert world.failures == []
    assert [end for end in world.ends if "is refused" not in end] == []
    answered = [int.from_bytes(frame[:4], "big") for frame in frames_of(world.client.taken())]
    assert answered == talk.asked
    assert len(answered) > 20
    assert not world.client.paused
    assert world.held == 0
