"""Tests of the gateway's capture of client traffic: it omits logins, and can be replayed."""

from __future__ import annotations

import random
import stat
from pathlib import Path

import pytest

from gateway.relays import request, response
from penstock.client import Consumer, Producer
from penstock.clock import ManualClock
from penstock.errors import ConfigError
from penstock.explorer.conversation import read_capture
from penstock.gateway import Gateway, Seen
from penstock.gateway.seen import capture
from penstock.gateway.seen.taps import Taps
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.produce_request import ProduceRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from penstock.testing import KafkaBroker
from penstock.testing.replay import Recording, mask_all

PEER, LOCAL = "10.0.0.7:1234", "10.0.0.1:9092"

SECRET = b"pencil-sharpener"
TOKEN = len(SECRET).to_bytes(4, "big") + SECRET
BEAT = HeartbeatRequest(group_id="g" * 300, generation_id=1, member_id="m")


def raised(what: str) -> None:
    raise AssertionError(what)


def taps_of(path: Path, of: list[str]) -> Taps:
    return Taps(Seen(capture=path, capture_of=of), raised, ManualClock(1_700_000_000_000))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("peer", "local"), [(PEER, LOCAL), ("2001:db8::7:1234", "2001:db8::1:9092")])
def test_a_conversation_is_whole_but_for_logins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, peer: str, local: str
) -> None:
    monkeypatch.setattr(capture, "_SEGMENT_BYTES_MAX", 100)
    dice = random.Random(seed)
    login = SaslAuthenticateRequest(auth_bytes=SECRET)
    asked = b"".join(
        [
            *(request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1), TOKEN, TOKEN),
            *(request(BEAT, 4, 2), request(ProduceRequest(acks=0, timeout_ms=1), 9, 3)),
            *(request(login, 2, 4), request(BEAT, 4, 5), request(BEAT, 3, 6)),
        ]
    )
    answered = b"".join(
        [
            *(response(SaslHandshakeResponse(mechanisms=["PLAIN"]), 0, 1), TOKEN, b"\0\0\0\0"),
            *(response(HeartbeatResponse(), 4, 2), response(SaslAuthenticateResponse(), 2, 4)),
            *(response(HeartbeatResponse(), 4, 5), response(HeartbeatResponse(error_code=25), 3, 6)),
        ]
    )
    path = tmp_path / "talk.pcap"
    taps = taps_of(path, [])
    tap = taps.of(peer, local)
    assert tap is not None
    for take, data in ((tap.received, asked), (tap.sent, answered)):
        while data:
            count = dice.choice((1, 3, 11, 12, 13, 200, 1000))
            take(memoryview(data[:count]))
            data = data[count:]
    tap.ended()
    taps.close()
    assert SECRET not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entries = [*read_capture(path.read_bytes(), None)]
    assert not [each.error for each in entries if each.error]
    found = [(each.name, (each.header or {})["correlationId"]) for each in entries]
    assert sorted(found) == sorted(
        [
            *(("SaslHandshakeRequest", 1), ("SaslHandshakeResponse", 1), ("ProduceRequest", 3)),
            *(("HeartbeatRequest", number) for number in (2, 5, 6)),
            *(("HeartbeatResponse", number) for number in (2, 5, 6)),
        ]
    )
    assert entries[0].time == 1_700_000_000


def test_chosen_clients_alone(tmp_path: Path) -> None:
    taps = taps_of(tmp_path / "talk.pcap", ["10.0.0.7"])
    try:
        assert taps.of(PEER, LOCAL) is not None
        assert taps.of("10.0.0.8:1234", LOCAL) is None
    finally:
        taps.close()


def test_a_capture_ends_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "CAPTURE_BYTES_MAX", 2000)
    path = tmp_path / "talk.pcap"
    taps = taps_of(path, [])
    tap = taps.of(PEER, LOCAL)
    assert tap is not None
    for number in range(50):
        tap.received(memoryview(request(BEAT, 4, number)))
    tap.ended()
    assert 1000 < path.stat().st_size <= 2000
    assert [each.name for each in read_capture(path.read_bytes(), None)][:2] == ["HeartbeatRequest"] * 2


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="capture_of"):
        Seen(capture_of=["10.0.0.7"])
    with pytest.raises(ConfigError, match="capture_of"):
        Seen(capture=tmp_path / "a", capture_of="10.0.0.7")
    with pytest.raises(ConfigError, match="cannot be written"):
        taps_of(tmp_path / "no" / "talk.pcap", [])


def use(servers: str) -> list[bytes | None]:
    """Produce three records and read them in a consumer group; return their values."""
    with Producer(bootstrap_servers=servers, client_id="app") as producer:
        for number in range(3):
            producer.send("t", b"order %d" % number, partition=0).result(60)
    options = {"group_id": "g", "auto_offset_reset": "earliest", "client_id": "app"}
    with Consumer(bootstrap_servers=servers, **options) as consumer:
        consumer.subscribe(["t"])
        found = [record.value for _, record in zip(range(3), consumer, strict=False)]
        consumer.commit()
    return found


def test_a_recording_of_the_capture_plays_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "talk.pcap"
    with (
        KafkaBroker(num_partitions=1) as broker,
        Gateway(to=broker.bootstrap_servers, seen=Seen(capture=path, capture_of=["127.0.0.1"])) as gateway,
    ):
        said = use(gateway.bootstrap_servers)
    assert said == [b"order 0", b"order 1", b"order 2"]
    recording = Recording.from_pcap(path)
    assert recording.unreadable_count == 0
    assert {"Produce", "Fetch", "OffsetCommit"} <= {each.api for each in recording.exchanges}
    recording.save(tmp_path / "talk.rec")
    with Recording.load(tmp_path / "talk.rec").cluster() as servers:
        assert use(servers.bootstrap_servers) == said
    masked = Recording.from_pcap(path, mask=mask_all("values"))
    assert not [each for each in masked.exchanges if b"order" in each.request]
