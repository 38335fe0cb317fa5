"""The laws of translated requests, with Apache Kafka 4.3 behind the translation."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker.wire_client import WireClient
from compat.peers import PATIENCE_S, shared_kafka
from gateway import test_seed_bytes, test_translated_records
from gateway.old_client import OldClient
from gateway.test_seed_bytes import raw, topic  # noqa: F401  fixtures
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest

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
