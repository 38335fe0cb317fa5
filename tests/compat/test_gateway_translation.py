"""The laws of translated requests, with Apache Kafka 4.3 behind the translation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

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
from gateway import test_seed_bytes, test_translated_records
from gateway.old_client import OldClient, await_leaders
from gateway.test_seed_bytes import raw, topic  # noqa: F401  fixtures
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.releases import RELEASES
from penstock.records.legacy import encode_message_set

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

for module in (test_seed_bytes, test_translated_records):
    globals().update({name: law for name, law in vars(module).items() if name.startswith("test_")})


@pytest.fixture(scope="module")
def port() -> int:
    """A broker whose coordinators have found their topics."""
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
    """The same bytes to a broker of the time, and through the translation to one of today."""
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
