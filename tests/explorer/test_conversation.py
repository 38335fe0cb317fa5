"""Tests that a capture is decoded to its Kafka messages, even with repeated or reordered segments."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace

import pytest

from explorer import captures
from explorer.captures import ACK, BROKER, CLIENT, SYN, Packet, pcap, pcapng, stream, timed
from for_each import for_each
from penstock.errors import DecodeError, EncodeError
from penstock.explorer.conversation import encoded, read_capture, read_frames
from penstock.explorer.sources import read_any, read_named, to_bytes
from penstock.protocol.framing import encode_request, encode_response
from penstock.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, PartitionData
from penstock.protocol.messages.metadata_request import MetadataRequestTopic
from penstock.protocol.messages.metadata_response import MetadataResponseBroker
from penstock.protocol.messages.produce_request import PartitionProduceData, TopicProduceData
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.legacy import encode_message

BATCH = encode_batch(
    [(b"k", b"one", [("unit", None)], 5), (None, b"\xff\x00", (), 6)],
    base_offset=7,
    codec=CompressionCodec.GZIP,
)


def frame(chunks) -> bytes:
    return b"".join(bytes(each) for each in chunks)


def talk() -> tuple[list[bytes], list[bytes]]:
    """Return the bytes of several requests and of their responses.

    The Produce request has acks=0, so it has no response. Two Fetch requests are answered one after the
    other.
    """
    produced = TopicProduceData(
        name="t", partition_data=[PartitionProduceData(index=0, records=BATCH), PartitionProduceData(index=1)]
    )
    fetched = FetchableTopicResponse(
        topic="t",
        partitions=[
            PartitionData(partition_index=0, error_code=0, high_watermark=9, records=BATCH + BATCH[:20]),
            PartitionData(
                partition_index=1,
                error_code=3,
                high_watermark=-1,
                records=encode_message(1, 4, b"k", b"v", 3),
            ),
        ],
    )
    requests = [
        encode_request(ApiVersionsRequest(client_software_name="x"), 4, 0, "me"),
        encode_request(MetadataRequest(topics=None), 12, 1, "me"),
        encode_request(ProduceRequest(acks=0, topic_data=[produced]), 9, 2, None),
        encode_request(FetchRequest(max_wait_ms=1), 11, 3, "me"),
        encode_request(FetchRequest(max_wait_ms=2), 12, 4, "me"),
    ]
    answers = [
        encode_response(ApiVersionsResponse(error_code=35), 0, 0),
        encode_response(
            MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="b", port=1)]), 12, 1
        ),
        encode_response(FetchResponse(responses=[fetched]), 11, 3),
        encode_response(FetchResponse(responses=[fetched]), 12, 4),
    ]
    return [frame(each) for each in requests], [frame(each) for each in answers]


REQUESTS, ANSWERS = talk()
NAMES = ["ApiVersionsRequest", "MetadataRequest", "ProduceRequest", "FetchRequest", "FetchRequest"]
REPLIES = ["ApiVersionsResponse", "MetadataResponse", "FetchResponse", "FetchResponse"]


def packets(first: int = 1000, size: int = 100, opens: bool = True) -> list[Packet]:
    asked = stream(CLIENT, BROKER, b"".join(REQUESTS), first=first, size=size, opens=opens)
    told = list(stream(BROKER, CLIENT, b"".join(ANSWERS), first=first, size=size, opens=opens))
    if opens:
        told[0] = replace(told[0], flags=SYN | ACK)
    return timed([*asked, *told])


def summary(capture: bytes, port: int | None = None) -> list[tuple[str, str | None]]:
    return [(entry.name, entry.error) for entry in read_capture(capture, port)]


EXPECTED = [(name, None) for name in NAMES + REPLIES]


@pytest.mark.parametrize("link", [0, 1, 101, 113, 276])
@pytest.mark.parametrize("order", "<>")
def test_every_kind_of_capture(link: int, order: str) -> None:
    assert summary(pcap(packets(), link, order)) == EXPECTED
    assert summary(pcap(packets(), link, order, nanoseconds=True)) == EXPECTED


def test_pcapng_with_vlans_and_its_own_clock() -> None:
    for order in "<>":
        entries = list(read_capture(pcapng(packets(), order)))
        assert [(entry.name, entry.error) for entry in entries] == EXPECTED
        # Units of a millionth of a second, nearly.
        assert entries[0].time == pytest.approx(1_700_000_000.001, abs=1e-6)
        assert entries[0].as_json()["time"].startswith("2023-11-14T22:13:20.00")


def test_ipv6() -> None:
    places = {CLIENT: ("fe80::1", 1), BROKER: ("::1", 2)}
    moved = [
        replace(each, source=places[each.source], destination=places[each.destination]) for each in packets()
    ]
    assert summary(pcap(moved)) == EXPECTED
    assert next(read_capture(pcap(moved))).connection == "[fe80::1]:1 -> [::1]:2"


@for_each(range(20))
def test_out_of_order_twice_overlapping_and_wrapped(seed: int) -> None:
    chance = random.Random(seed)
    sent = packets(first=2**32 - chance.randrange(1, 700), size=chance.choice((1, 7, 60, 1400)))
    opening, data = (
        [each for each in sent if each.flags & SYN],
        [each for each in sent if not each.flags & SYN],
    )
    data += chance.sample(data, len(data) // 2)
    # A retransmission may begin in the middle of what was sent before.
    data += [
        replace(each, sequence=(each.sequence + 1) % 2**32, data=each.data[1:])
        for each in chance.sample(data, len(data) // 3)
    ]
    chance.shuffle(data)
    found = summary(pcap([*opening, *data]))
    assert sorted(found) == sorted(EXPECTED)


def test_a_capture_that_began_late_and_whose_ends_are_told_by_their_words() -> None:
    sent = packets(opens=False)
    assert summary(pcap(sent)) == EXPECTED
    assert summary(pcap(sorted(sent, key=lambda each: each.source, reverse=True))) == EXPECTED


def test_answers_are_timed_from_their_requests() -> None:
    entries = list(read_capture(pcap(packets(size=10_000))))
    assert [entry.elapsed_ms and round(entry.elapsed_ms) for entry in entries[-4:]] == [2, 2, 2, 2]
    assert entries[-1].as_json()["elapsedMs"] == pytest.approx(2, abs=0.01)


def test_missing_bytes_are_told() -> None:
    sent = packets(size=30)
    assert [
        error for _, error in summary(pcap(sent[:4] + sent[5:])) if error and "30 bytes are missing" in error
    ]


def test_ports_used_again_are_another_connection() -> None:
    again = [replace(each, time=each.time + 60) for each in packets(first=77_000)]
    assert summary(pcap(packets() + again)) == EXPECTED * 2


def test_what_is_not_kafka_is_left_out_or_told() -> None:
    web = list(timed(stream(("10.0.0.9", 1), ("10.0.0.8", 80), b"GET / HTTP/1.0\r\n\r\n")))
    assert summary(pcap(web + packets())) == EXPECTED
    ((name, error),) = summary(pcap(web))
    assert name == ""
    assert error is not None
    assert "no frames of Kafka" in error
    assert summary(pcap(web + packets()), port=9092) == EXPECTED
    assert summary(pcap(packets()), port=1) == []


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_broken_capture_gives_entries_or_an_error_that_is_meant(make) -> None:
    whole = make(packets())
    chance = random.Random(1)
    for size in range(0, len(whole), 37):
        read_all(whole[:size])
    for _ in range(300):
        broken = bytearray(whole)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        read_all(bytes(broken))


def read_all(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        for entry in read_any(data):
            entry.as_json()


def test_records_are_unpacked() -> None:
    entries = list(read_capture(pcap(packets())))
    produced, fetched = entries[2], entries[-1]
    (batch,) = produced.records["topicData[0].partitionData[0].records"]
    assert batch["compression"] == "gzip"
    assert batch["records"] == [
        {
            "offset": 7,
            "timestamp": 5,
            "key": "k",
            "value": "one",
            "headers": [{"name": "unit", "value": None}],
        },
        {"offset": 8, "timestamp": 6, "key": None, "valueBase64": "/wA="},
    ]
    assert fetched.records["responses[0].partitions[0].records"][1] == {"partialBytes": 20}
    (old,) = fetched.records["responses[0].partitions[1].records"]
    assert old["magic"] == 1
    assert old["records"] == [{"offset": 4, "timestamp": 3, "key": "k", "value": "v"}]


def test_damaged_records_say_so() -> None:
    damaged = bytearray(BATCH)
    damaged[-1] ^= 1
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=bytes(damaged))])
    (entry,) = read_frames(frame(encode_request(ProduceRequest(topic_data=[topic]), 9, 2, None)))
    assert "checksum" in str(entry.records) or "CRC" in str(entry.records)


def test_an_entry_as_json_makes_the_same_frame_again() -> None:
    entries = list(read_frames(b"".join(REQUESTS), b"".join(ANSWERS)))
    assert [entry.name for entry in entries] == [
        NAMES[0], REPLIES[0], NAMES[1], REPLIES[1], NAMES[2], NAMES[3], REPLIES[2], NAMES[4], REPLIES[3],
    ]  # fmt: skip
    frames = {encoded(entry.as_json()) for entry in entries if entry.name != "ApiVersionsResponse"}
    assert frames == {*REQUESTS, *ANSWERS[1:]}


def test_frames_of_both_directions_in_one_file() -> None:
    mixed = [REQUESTS[1], ANSWERS[1], REQUESTS[3], REQUESTS[4], ANSWERS[3], ANSWERS[2]]
    entries = list(read_any(b"".join(mixed)))
    assert [(entry.name, entry.version, entry.error) for entry in entries] == [
        ("MetadataRequest", 12, None), ("MetadataResponse", 12, None), ("FetchRequest", 11, None),
        ("FetchRequest", 12, None), ("FetchResponse", 12, None), ("FetchResponse", 11, None),
    ]  # fmt: skip


def test_a_request_needs_no_size() -> None:
    for request, name in zip(REQUESTS, NAMES, strict=True):
        assert [entry.name for entry in read_any(request[4:])] == [name]
        assert [entry.name for entry in read_any(request)] == [name]


def test_a_frame_cut_short_is_told() -> None:
    entries = list(read_any(REQUESTS[0] + REQUESTS[1][:-2]))
    assert entries[0].error is None
    assert entries[1].error is not None
    assert "cut short" in entries[1].error


def test_an_answer_nobody_asked_for() -> None:
    *_, last = read_frames(REQUESTS[0], ANSWERS[0] + ANSWERS[1])
    assert last.error == "an answer to a request that is not there (correlation id 1)"


def test_an_answer_by_name() -> None:
    answer = frame(encode_response(ProduceResponse(), 9, 5))
    for data in (answer, answer[4:]):
        entry = read_named(ProduceResponse, 9, data, header=True)
        assert entry.header == {"correlationId": 5}
        assert entry.body == {"responses": [], "throttleTimeMs": 0}
    with pytest.raises(DecodeError, match="name one with -v"):
        read_named(ProduceResponse, None, answer)


def test_hex_in_all_its_dress() -> None:
    for text in (b"0aFF01", b" 0a ff 01\n", b"0x0a, 0xff, 0x01", b"0a:ff:01"):
        assert to_bytes(text) == b"\x0a\xff\x01"
    assert to_bytes(b"\0\1") == b"\0\1"
    assert to_bytes(b"") == b""


def test_unknown_tags_are_shown() -> None:
    request = MetadataRequest(topics=None, unknown_tags={77: b"\1\2"})
    (entry,) = read_frames(frame(encode_request(request, 12, 1, None)))
    assert entry.as_json()["unknownTags"] == {"": {"77": "0102"}}


def test_unknown_tags_and_trailing_bytes_find_their_way_back() -> None:
    topics = [MetadataRequestTopic(name=name, unknown_tags={5: name.encode()}) for name in ("a", "b")]
    body = MetadataRequest(topics=topics, unknown_tags={7: b"", 300: b"z"}).encode(12)
    header = b"\0\3\0\x0c\0\0\0\1\0\1m" + b"\1\x09\2hi"
    sent = len(header + body + b"xyz").to_bytes(4, "big") + header + body + b"xyz"
    (entry,) = read_frames(sent)
    shown = entry.as_json()
    assert entry.error is None
    assert shown["trailingBytes"] == b"xyz".hex()
    assert shown["unknownTags"].keys() == {"header", "", "topics[0]", "topics[1]"}
    assert encoded(shown) == sent


@pytest.mark.parametrize(
    "change",
    [
        {"unknownTags": 3},
        {"unknownTags": {"": {"x": ""}}},
        {"unknownTags": {"": {"1": 3}}},
        {"unknownTags": {"topics[9]": {"1": "00"}}},
        {"unknownTags": {"colour": {"1": "00"}}},
        {"trailingBytes": "x"},
        {"trailingBytes": 3},
    ],
)
def test_what_goes_back_is_checked(change: dict[str, object]) -> None:
    (entry,) = read_frames(REQUESTS[1])
    with pytest.raises(EncodeError, match=next(iter(change))):
        encoded({**entry.as_json(), **change})


def test_captures_need_tcp() -> None:
    assert list(read_capture(captures.pcap([]))) == []
