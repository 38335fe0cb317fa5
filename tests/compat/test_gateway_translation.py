"""Tests of the gateway's translation of old requests, run again with Apache Kafka 4.3 behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.bench_node import batch_of
from broker.wire_client import WireClient
from compat.peers import PATIENCE_S, real_kafka, shared_kafka, until
from documents.guide import fetch_body, metadata, offsets, produce_body
from documents.raw import (
    FETCH,
    OFFSETS,
    PRODUCE,
    Raw,
    array,
    i32,
    i64,
    message,
    message_set,
    string,
)
from gateway import test_seed_bytes, test_translated_answers, test_translated_records
from gateway.old_client import OldClient, await_leaders, versions_of
from gateway.test_seed_bytes import raw, topic  # noqa: F401  fixtures
from gateway.test_translated_records import produce_of
from gateway.test_translation_table import taken
from penstock.protocol.messages.delete_topics_response import DeleteTopicsResponse
from penstock.protocol.messages.describe_configs_response import DescribeConfigsResponse
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.releases import RELEASES
from penstock.records.format.batch_header import split_batches
from penstock.records.legacy import encode_message_set

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(600)]

for module in (test_seed_bytes, test_translated_records):
    globals().update({name: law for name, law in vars(module).items() if name.startswith("test_")})


@pytest.fixture(scope="module")
def port() -> int:
    """Return the port of an Apache Kafka broker whose coordinators are ready."""
    port = int(shared_kafka("4.3").rpartition(":")[2])
    deadline = time.monotonic() + PATIENCE_S
    with WireClient(port, timeout_s=60) as client:
        while True:
            codes = [
                client.ask(FindCoordinatorRequest(key="g", key_type=kind), 3).error_code for kind in (0, 1)
            ]
            begun = InitProducerIdRequest(transactional_id="first", transaction_timeout_ms=60_000)
            codes.append(client.ask(begun, 4).error_code)
            if not any(codes):
                return port
            assert time.monotonic() < deadline, codes
            time.sleep(0.1)


@pytest.fixture
def new(port: int) -> Iterator[WireClient]:
    with WireClient(port, timeout_s=60) as client:
        yield client


@pytest.fixture
def old(new: WireClient) -> OldClient:
    return OldClient(new)


# --- beside the brokers of the time -------------------------------------------------------------------------

TALK: dict[str, tuple[int, int, Callable[[str], bytes]]] = {
    "three messages": (PRODUCE, 0, lambda name: produce_body({(name, 0): THREE})),
    "three more, and a partition that is not there": (
        PRODUCE,
        0,
        lambda name: produce_body({(name, 0): THREE, (name, 77): THREE}),
    ),
    "a message that is cut": (PRODUCE, 0, lambda name: produce_body({(name, 0): THREE[:-1]})),
    "nothing": (PRODUCE, 0, lambda name: produce_body({(name, 0): b""})),
    "a wrong checksum": (
        PRODUCE,
        0,
        lambda name: produce_body({(name, 0): message_set(message(b"x", crc=1))}),
    ),
    "all of it": (FETCH, 0, lambda name: fetch_body({(name, 0): 0})),
    "from within": (FETCH, 0, lambda name: fetch_body({(name, 0): 4, (name, 77): 0})),
    "the end": (FETCH, 0, lambda name: fetch_body({(name, 0): 8})),
    "behind the end": (FETCH, 0, lambda name: fetch_body({(name, 0): 99})),
    "half a message": (FETCH, 0, lambda name: fetch_body({(name, 0): 0}, most=20)),
    "the latest offset": (OFFSETS, 0, lambda name: offsets_body(name, -1, 1)),
    "the latest offsets": (OFFSETS, 0, lambda name: offsets_body(name, -1, 9)),
    "the earliest offset": (OFFSETS, 0, lambda name: offsets_body(name, -2, 9)),
    "no offset": (OFFSETS, 0, lambda name: offsets_body(name, -1, 0)),
    "long before": (OFFSETS, 0, lambda name: offsets_body(name, 5, 9)),
    "a time that is none": (OFFSETS, 0, lambda name: offsets_body(name, -3, 9)),
    "with times": (PRODUCE, 2, lambda name: produce_body({(name, 0): DATED})),
    "times": (FETCH, 2, lambda name: fetch_body({(name, 0): 8})),
    "a limit for all": (
        FETCH,
        3,
        lambda name: (
            i32(-1) + i32(0) + i32(0) + i32(50) + array([string(name) + array([i32(0) + i64(8) + i32(10)])])
        ),
    ),
}

THREE = message_set(message(b"one"), message(None, b"key"), message(b"", b""))
DATED = encode_message_set([(b"k", b"x", 1234567890123), (None, None, -1)], 1)


def offsets_body(name: str, time_ms: int, most: int) -> bytes:
    return i32(-1) + array([string(name) + array([i32(0) + i64(time_ms) + i32(most)])])


OTHERWISE = {
    ("0.10.2", "half a message"),  # of magic 1, as it is stored there
    ("0.8.2", "three more, and a partition that is not there"),  # in no order
}


@pytest.mark.parametrize("release", ["0.10.2", "0.8.2"])
def test_answers_are_those_of_the_time_to_the_byte(old: OldClient, new: WireClient, release: str) -> None:
    """An old broker and a current one behind the translation give the same bytes for the same requests."""
    name = f"beside-{release}"
    await_leaders(new, name)
    different = []
    with real_kafka(release) as servers:
        host, port = servers.split(":")
        with Raw((host, int(port))) as theirs:
            until(lambda: metadata(theirs, name).partitions, "the topic is made")
            until(lambda: not offsets(theirs, (name, 0), -1)[0], "its log is there")
            for what, (api, version, body) in TALK.items():
                if version <= RELEASES[release].apis[api].highest:
                    expected = theirs.ask(api, body(name), version=version)
                    found = old.ask_bytes(api, version, body(name))
                    if (release, what) not in OTHERWISE and found != expected.body[expected.at :]:
                        different.append(f"{what}:\n{found!r}, there\n{expected.body[expected.at :]!r}")
    assert not different, "\n".join(different)


# --- a broker that takes both ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[WireClient, dict[int, tuple[int, int]]]]:
    """Yield a connection to Kafka 3.9, and the API versions of 3.9 that 4.3 still has."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "secret",
    }
    with real_kafka("3.9", settings) as servers, WireClient(int(servers.split(":")[1]), 60) as client:
        there, later = versions_of(client), taken("4.3")
        await_leaders(client, "t")
        batch = batch_of(*[b"v%d" % number for number in range(9)])
        client.ask(produce_of("t", batch), 9)
        until(
            lambda: (
                not client.ask(FindCoordinatorRequest(key="same"), 3).error_code
                and not client.ask(test_translated_answers.committed("same"), 2).error_code
            ),
            "a coordinator",
        )
        yield (
            client,
            {
                key: (max(low, later[key][0]), min(high, later[key][1]))
                for key, (low, high) in there.items()
                if key in later
            },
        )


@pytest.mark.parametrize(
    "name",
    [
        each for each in test_translated_answers.SAME if each != "Fetch cut"
    ],  # of half a batch 3.9 makes nothing
)
def test_dropped_versions_are_answered_as_by_3_9(
    both: tuple[WireClient, dict[int, tuple[int, int]]], name: str
) -> None:
    client, upstream = both
    make, versions = test_translated_answers.SAME[name]
    old = OldClient(client, upstream)
    for version in versions:
        if version == 0 and name.startswith(("OffsetCommit", "OffsetFetch")):
            continue  # KRaft has no ZooKeeper, and answers 35
        request = make()
        expected: Any = client.ask(request, version)
        found: Any = old.ask(request, version)
        if name == "DeleteAcls":  # the first has deleted what there was
            assert len(expected.filter_results[0].matching_acls) == 2
            assert found.filter_results[0].matching_acls == []
        elif name == "CreateDelegationToken":  # each has an id of its own; here clients have no names
            assert found.error_code == expected.error_code
        else:
            assert comparable(found) == comparable(expected), version


def comparable(answer: Any) -> Any:
    """Return an answer without the order, padding and flags that may differ between the brokers."""
    if isinstance(answer, FetchResponse):
        return [
            (each.partition_index, each.error_code, each.high_watermark, list(whole(each.records)))
            for each in answer.responses[0].partitions
        ]
    if isinstance(answer, DeleteTopicsResponse):
        answer.responses.sort(key=lambda each: str(each.name))
    if isinstance(answer, DescribeConfigsResponse):
        for result in answer.results:
            for entry in result.configs:
                entry.is_default = False
    return answer


def whole(records: Any) -> Iterator[bytes]:
    """Yield the complete batches of a Fetch response, without a truncated one at its end.

    Brokers that convert records to an older format fill the remaining space with part of a message.
    """
    for start, end, _ in split_batches(records):
        yield bytes(records[start:end])
