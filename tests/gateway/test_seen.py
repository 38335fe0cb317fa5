"""Tests of what a gateway records about clients: its access log, its metrics, and selected traffic."""

from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.wire_client import WireClient
from gateway.relays import request, response
from gateway.test_gateway import produce, until
from penstock.cli.gateway import picture
from penstock.clock import ManualClock
from penstock.errors import ConfigError
from penstock.gateway import Gateway, Seen
from penstock.gateway.contracts import Tap
from penstock.gateway.counters import ClientCount
from penstock.gateway.seen.access_log import WAITING_MAX
from penstock.gateway.seen.frames import Frames
from penstock.gateway.seen.metrics_page import page
from penstock.gateway.seen.taps import Taps
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.produce_request import ProduceRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.testing import KafkaBroker
from penstock.v07.driver import Driver07

BEAT = request(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4, 7)
BEATEN = response(HeartbeatResponse(), 4, 7)
PEER = "10.0.0.7:1234"
LOCAL = "10.0.0.1:9092"


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(num_partitions=3) as broker:
        yield broker


def raised(what: str) -> None:
    raise AssertionError(what)


OPEN: list[Taps] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    """Close the files that a test has left in the list `OPEN`."""
    yield
    while OPEN:
        OPEN.pop().close()


def taps_of(seen: Seen, clock: ManualClock, caught: Callable[[str], None] = raised) -> Taps:
    OPEN.append(Taps(seen, caught, clock))
    return OPEN[-1]


def tap_of(seen: Seen, clock: ManualClock, caught: Callable[[str], None] = raised) -> Tap:
    tap = taps_of(seen, clock, caught).of(PEER, LOCAL)
    assert tap is not None
    return tap


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("seed", range(20))
def test_frames_are_the_same_however_they_arrive(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [dice.choice((0, 1, 3, 4, 10, 11, 500)) for _ in range(30)]
    data = b"".join(size.to_bytes(4, "big") + bytes([size & 0xFF]) * size for size in sizes)
    frames = Frames(10)
    found: list[tuple[bytes, int]] = []
    while data:
        count = dice.randrange(1, 30)
        found += frames.cut(memoryview(data[:count]))
        data = data[count:]
    expected = [(bytes([size & 0xFF]) * min(size, 10), size) for size in sizes]
    assert found == [each for each in expected if each[1]] or found == expected


def test_a_line_is_written_for_each_request(tmp_path: Path) -> None:
    clock, path = ManualClock(1_700_000_000_000), tmp_path / "log"
    tap = tap_of(Seen(access_log=path), clock)
    versions = ApiVersionsRequest(client_software_name="old-device", client_software_version="2")
    tap.received(memoryview(request(versions, 3, 6)))
    silent = request(ProduceRequest(acks=0, timeout_ms=1), 9, 5)
    tap.received(memoryview(silent + BEAT[:9]))
    tap.received(memoryview(BEAT[9:]))
    clock.advance(25)
    tap.sent(memoryview(response(HeartbeatResponse(), 4, 6) + BEATEN))
    tap.received(memoryview(BEAT))
    tap.ended()
    lines = lines_of(path)
    assert [(each["api"], each["response_bytes"], each["ms"]) for each in lines] == [
        ("ApiVersions", len(BEATEN), 25),
        ("Produce", None, None),
        ("Heartbeat", len(BEATEN), 25),
        ("Heartbeat", None, None),
    ]
    assert lines[2] == {
        "time": "2023-11-14T22:13:20.025Z",
        "address": "10.0.0.7",
        "port": 1234,
        "software": "old-device",
        "software_version": "2",
        "client_id": "device",
        "api": "Heartbeat",
        "version": 4,
        "correlation_id": 7,
        "request_bytes": len(BEAT),
        "response_bytes": len(BEATEN),
        "ms": 25.0,
    }


def test_a_line_is_written_for_each_connection(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "log"
    tap = tap_of(Seen(access_log=path, access_log_of="connections"), clock)
    tap.received(memoryview(BEAT * 2))
    tap.sent(memoryview(BEATEN))
    clock.advance(1500)
    tap.ended()
    [line] = lines_of(path)
    assert line["client_id"] == "device"
    counted = [line[name] for name in ("requests", "request_bytes", "response_bytes", "seconds")]
    assert counted == [2, 2 * len(BEAT), len(BEATEN), 1.5]


def test_requests_that_nobody_answers_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tap = tap_of(Seen(access_log=path), ManualClock())
    for _ in range(WAITING_MAX + 5):
        tap.received(memoryview(BEAT))
    assert len(lines_of(path)) == 5


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        Taps(Seen(access_log=tmp_path / "no" / "log"), raised)


@pytest.mark.parametrize(
    "options",
    [{"access_log_of": "bytes"}, {"explain": "10.0.0.7"}, {"explain": ["10.0.0.7"]}, {"metrics_port": -1}],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Seen(**options)


def test_chosen_clients_are_explained() -> None:
    lines: list[str] = []
    seen = Seen(explain=["10.0.0.7"], explain_to=lines.append)
    tap = tap_of(seen, ManualClock())
    tap.received(memoryview(BEAT))
    tap.sent(memoryview(BEATEN))
    asked, answered = map(json.loads, lines)
    assert (asked["name"], asked["connection"]) == ("HeartbeatRequest", PEER)
    assert asked["json"]["groupId"] == "g"
    assert answered["name"] == "HeartbeatResponse"
    assert Taps(seen, raised).of("10.0.0.8:1234", LOCAL) is None


def test_passwords_are_not_explained() -> None:
    lines: list[str] = []
    tap = tap_of(Seen(explain=["10.0.0.7"], explain_to=lines.append), ManualClock())
    tap.received(memoryview(request(SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"), 2)))
    token = b"\0user\0secret-too"
    tap.received(memoryview(len(token).to_bytes(4, "big") + token))
    assert len(lines) == 2
    for line in lines:
        assert "secret" not in line
        assert b"secret".hex() not in line


def test_a_sink_that_raises_ends_alone(tmp_path: Path) -> None:
    def broken(line: str) -> None:
        raise RuntimeError("broken")

    caught: list[str] = []
    path = tmp_path / "log"
    seen = Seen(access_log=path, explain=["10.0.0.7"], explain_to=broken)
    tap = tap_of(seen, ManualClock(), caught.append)
    for _ in range(2):
        tap.received(memoryview(BEAT))
    tap.ended()
    assert caught == [f"what is written about {PEER}"]
    assert len(lines_of(path)) == 2


ROWS = [
    ClientCount("a", "1", "", "10.0.0.1", "Fetch", 3, 2, 20, 200, False),
    ClientCount("a", "1", "", "10.0.0.2", "Fetch", 3, 1, 10, 100, False),
    ClientCount("", "", 'x"\n\\', "10.0.0.2", "Fetch", 12, 1, 10, 100, True),
]


def test_the_page_of_metrics_has_sums_over_addresses() -> None:
    lines = page(ROWS, 3, 99).splitlines()
    labels = 'software="a",software_version="1",client_id="",api="Fetch",version="3",translated="true"'
    assert f"penstock_gateway_requests_total{{{labels}}} 3" in lines
    assert f"penstock_gateway_request_bytes_total{{{labels}}} 30" in lines
    assert f"penstock_gateway_response_bytes_total{{{labels}}} 300" in lines
    assert any(r'client_id="x\"\n\\"' in line for line in lines)
    assert "penstock_gateway_connections 3" in lines


def test_the_live_table_has_clients_and_what_is_translated() -> None:
    head, _, *table = picture(ROWS, "127.0.0.1:9092")
    assert head == "gateway at 127.0.0.1:9092: 4 requests"
    assert table[0].split("  ")[0] == "software"
    assert table[1].split() == ["a", "1", "10.0.0.1", "Fetch", "3", "2", "20", "200", "yes"]
    assert table[3].split()[-1] == "-"


def test_a_gateway_writes_all_of_it(broker: KafkaBroker, tmp_path: Path) -> None:
    lines: list[str] = []
    path = tmp_path / "log"
    seen = Seen(metrics_port=0, access_log=path, explain=["127.0.0.1"], explain_to=lines.append)
    with Gateway(to=broker.bootstrap_servers, seen=seen) as gateway:
        produce(gateway.bootstrap_servers, "t", 30)
        with WireClient(gateway.port) as client:
            client.ask(ApiVersionsRequest(), 0)
        text = urllib.request.urlopen(f"http://127.0.0.1:{gateway.metrics_port}/metrics").read().decode()
        row = next(row for row in gateway.clients() if row.api == "Produce")
    assert 'software="penstock"' in text
    assert (row.address, row.response_bytes > 0) == ("127.0.0.1", True)
    assert row.request_bytes > row.requests * 50
    until(lambda: {"ApiVersions", "Produce"} <= {each["api"] for each in lines_of(path)})
    names = {json.loads(line)["name"] for line in lines}
    assert {"ApiVersionsRequest", "ApiVersionsResponse", "ProduceRequest", "ProduceResponse"} <= names
    assert not [line for line in lines if '"error"' in line]


def test_clients_of_0_7_are_on_the_page_of_metrics(broker: KafkaBroker) -> None:
    with Gateway(to=broker.bootstrap_servers, v07_port=0, seen=Seen(metrics_port=0)) as gateway:
        assert gateway.v07_port is not None
        with Driver07("127.0.0.1", gateway.v07_port) as driver:
            driver.send("old", [b"1"], partition=0)
            until(lambda: bool(driver.latest("old", 0)))
        text = urllib.request.urlopen(f"http://127.0.0.1:{gateway.metrics_port}/metrics").read().decode()
    assert 'software="Kafka 0.7",software_version="",client_id="",api="Produce",version="0"' in text
