"""Tests of recordings made from captures and of their files, which contain no masked or secret data."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.captures import pcap, stream, timed
from for_each import for_each
from penstock import Producer
from penstock.broker.security.throwaway import Security
from penstock.errors import ConfigError, DecodeError
from penstock.protocol.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from penstock.protocol.messages.alter_configs_response import AlterConfigsResponse
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.records.batch import encode_batch, encode_marker
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import read_header, verify_crc
from penstock.records.legacy import encode_message
from penstock.testing import KafkaBroker
from penstock.testing.replay import (
    MaskRule,
    Recording,
    application,
    cluster,
    files,
    mask_all,
    mask_fields,
    mask_matches,
    mask_with,
)
from penstock.testing.replay.walking import rows_of
from testing.replay.shop import COUNT, capture, order
from testing.replay.talks import captured, tapped

CLIENT, BROKER = ("10.0.0.1", 40_000), ("10.0.0.2", 9092)


def fetched(records: bytes, topic: str = "orders") -> bytes:
    part = PartitionData(partition_index=0, records=records, high_watermark=10)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[part])])
    return captured((FetchRequest(), answer, 11))


def values(recording: Recording, api: str = "Fetch") -> list[bytes | None]:
    """Return the record values in a recording's Fetch responses or Produce requests."""
    found: list[bytes | None] = []
    for each in recording.exchanges:
        if each.api != api or each.response is None:
            continue
        if api == "Fetch":
            parts = [part for topic in each.answer().responses for part in topic.partitions]
        else:
            parts = [part for topic in each.asked().topic_data for part in topic.partition_data]
        found += [row.value for part in parts for row in rows_of(part.records)]
    return found


def everything(recording: Recording, tmp_path: Path) -> bytes:
    """Save a recording, and return all decompressed bytes of its file."""
    recording.save(tmp_path / "it.rec")
    data: bytes = gzip.decompress((tmp_path / "it.rec").read_bytes())
    return data


def test_it_has_what_was_said() -> None:
    recording = Recording.from_pcap(capture(), port=9092)
    assert recording.client_ids == ["shop", "desk"]
    assert recording.unreadable_count == 0
    assert values(recording) == [order(number) for number in range(COUNT)]
    assert values(recording, "Produce") == values(recording)
    first = recording.exchanges[0]
    assert (first.api, first.broker, first.connection, first.at_ms) == ("ApiVersions", "10.0.0.2:9092", 1, 0)
    answered = [each for each in recording.exchanges if each.answered_ms is not None]
    assert all(each.at_ms < (each.answered_ms or 0) for each in answered)
    assert len(answered) >= len(recording.exchanges) - 1  # a fetch may be under way at the end
    assert [each.at_ms for each in recording.exchanges] == sorted(each.at_ms for each in recording.exchanges)


def test_a_file_is_the_same_recording(tmp_path: Path) -> None:
    recording = Recording.from_pcap(capture(), mask=mask_all("headers"))
    recording.save(tmp_path / "one.rec")
    loaded = Recording.load(tmp_path / "one.rec")
    assert loaded.exchanges == recording.exchanges
    assert loaded.masked == ("headers",)
    loaded.save(tmp_path / "two.rec")
    assert (tmp_path / "one.rec").read_bytes() == (tmp_path / "two.rec").read_bytes()


def test_a_capture_without_kafka_is_refused() -> None:
    with pytest.raises(DecodeError, match="without TLS"):
        Recording.from_pcap(pcap(timed(stream(CLIENT, BROKER, b"GET / HTTP/1.1\r\n\r\n"))))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no gzip", "is no recording"),
        (gzip.compress(b"no json\n", mtime=0), "is no recording"),
        (gzip.compress(b"[]\n", mtime=0), "is no recording"),
        (gzip.compress(b'{"penstock_recording": 2}\n', mtime=0), "has format 2, this Penstock reads 1"),
        (
            gzip.compress(b'{"penstock_recording": 1, "exchanges": 1, "masked": []}\n', mtime=0),
            "is no recording",
        ),
        (
            gzip.compress(
                b'{"penstock_recording": 1, "exchanges": 1, "masked": []}\n'
                b'{"api": "Brew", "key": 3000, "version": 1, "request": 0}\n\n',
                mtime=0,
            ),
            "Brew v1 is not known",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "bad.rec").write_bytes(content)
    with pytest.raises(DecodeError, match=reason):
        Recording.load(tmp_path / "bad.rec")


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    data = everything(Recording.from_pcap(capture()), tmp_path)
    for size in range(0, len(data), 97):
        (tmp_path / "cut.rec").write_bytes(gzip.compress(data[:size], 1, mtime=0))
        with pytest.raises(DecodeError):
            Recording.load(tmp_path / "cut.rec")


# --- masks ------------------------------------------------------------------------------------------------


def test_fields_are_masked_and_equal_ones_stay_equal(tmp_path: Path) -> None:
    recording = Recording.from_pcap(capture(), mask=mask_fields("customer.email"))
    found = [json.loads(value or b"") for value in values(recording)]
    assert [each["n"] for each in found] == list(range(COUNT))
    emails = [each["customer"]["email"] for each in found]
    assert emails == [emails[number % 3] for number in range(COUNT)]
    assert len(set(emails)) == 3
    assert values(recording, "Produce") == values(recording)
    assert b"@x.org" not in everything(recording, tmp_path)


def test_masks_differ_between_recordings_but_for_one_secret() -> None:
    rule = mask_all("values")
    first, second = (values(Recording.from_pcap(capture(), mask=rule)) for _ in range(2))
    assert set(first).isdisjoint(second)
    first, second = (values(Recording.from_pcap(capture(), mask=rule, mask_secret=b"one")) for _ in range(2))
    assert first == second


def test_nothing_masked_is_left(tmp_path: Path) -> None:
    rules = mask_all("values", "keys", "headers", "client_ids")
    recording = Recording.from_pcap(capture(), mask=rules)
    data = everything(recording, tmp_path)
    for text in (b"customer", b"@x.org", b"k3", b"t-3", b"shop", b"desk-"):
        assert text not in data, text
    assert len(set(recording.client_ids)) == 2


def test_lengths_and_kinds_of_characters_are_kept_where_asked() -> None:
    rule = mask_matches(r"a\d@x\.org", keep_length=True)
    found = values(Recording.from_pcap(capture(), mask=rule))
    originals = [order(number) for number in range(COUNT)]
    for value, original in zip(found, originals, strict=True):
        assert value is not None
        assert len(value) == len(original)
        assert value != original
        assert re.fullmatch(r"[a-z]\d@[a-z]\.[a-z]{3}", json.loads(value)["customer"]["email"])


@for_each(
    [
        (
            mask_fields("a.b", keep_length=True),
            b'{"a": [{"b": "xy"}, {"c": 1}]}',
            rb'{"a":\[{"b":"[a-z]{2}"},{"c":1}\]}',
        ),
        (mask_fields("*.b"), b'{"a": {"b": 12.5}}', rb'{"a":{"b":\d\d\.\d}}'),
        (mask_fields("a"), b'{"a": [true, null, -7]}', rb'{"a":\[true,null,-\d\]}'),
        (mask_fields("a"), b'{"b": 1}', rb'{"b": 1}'),
        (mask_fields("a"), b"no json", rb"[0-9a-f]{16}"),
        (mask_fields("a"), b'\0\0\0\0\x07{"a": "x"}', rb'\0\0\0\0\x07{"a":"[0-9a-f]{16}"}'),
        (
            mask_all("values", keep_length=True),
            "\u00e9\u4e2d A1-".encode(),
            "[\u00e0-\u00f6][\u4e00-\u9dff] [A-Z][0-9]-".encode(),
        ),
        (mask_all("values", keep_length=True), b"\xff\xfe\xfd", rb"(?s)..."),
        (mask_all("values", topics="others"), b"x", rb"x"),
        (mask_all("values", topics="ord.*"), b"x", rb"[0-9a-f]{16}"),
        (mask_with(lambda data: data[:2] + b"..."), b"abcdef", rb"ab\.\.\."),
        (mask_matches(r"\d{4}", "values"), b"pin 1234!", rb"pin [0-9a-f]{16}!"),
        (mask_all("values"), b"", rb""),
    ]
)
def test_a_rule(rule: MaskRule, value: bytes, expected: bytes) -> None:
    batch = encode_batch([(None, value, (), 0)])
    (found,) = values(Recording.from_pcap(fetched(batch), mask=rule, mask_secret=b"s"))
    assert re.fullmatch(expected.decode("latin-1"), (found or b"").decode("latin-1")) or re.fullmatch(
        expected.decode("utf-8"), (found or b"").decode("utf-8")
    )
    if value and expected != value and not rule.topics:
        assert found != value or expected == rb'{"b": 1}'


def test_a_batch_keeps_what_is_not_masked() -> None:
    rows = [(b"k", b"v%d" % number, (("h", None),), 1000 + number) for number in range(3)]
    batch = encode_batch(
        rows,
        base_offset=7,
        codec=CompressionCodec.GZIP,
        producer_id=5,
        producer_epoch=1,
        base_sequence=9,
        is_transactional=True,
        partition_leader_epoch=4,
        offset_deltas=[0, 2, 5],
    )
    marker = encode_marker(
        1, base_offset=13, producer_id=5, producer_epoch=1, coordinator_epoch=0, timestamp=1
    )
    recording = Recording.from_pcap(fetched(batch + marker + batch[:80]), mask=mask_all("values"))
    (part,) = recording.exchanges[0].answer().responses[0].partitions
    made = bytes(part.records)
    header = read_header(made)
    before = read_header(batch)
    same = (
        "base_offset",
        "attributes",
        "last_offset_delta",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
    )
    for name in (*same, "producer_epoch", "base_sequence", "record_count", "partition_leader_epoch"):
        assert getattr(header, name) == getattr(before, name)
    verify_crc(made, 0, header.size)
    assert made[header.size :] == marker  # the partial batch, which cannot be masked, is gone
    found = rows_of(made)
    assert [row.offset for row in found] == [7, 9, 12]
    assert [row.key for row in found] == [b"k"] * 3
    assert {row.value for row in found}.isdisjoint({row[1] for row in rows})


def test_damaged_records_are_left_out_where_they_are_to_be_masked() -> None:
    batch = bytearray(encode_batch([(None, b"secret", (), 0)]))
    batch[-3] ^= 1
    recording = Recording.from_pcap(fetched(bytes(batch)), mask=mask_all("values"))
    assert values(recording) == []


def test_records_of_old_formats_are_not_masked_by_half() -> None:
    old = fetched(encode_message(0, 1, None, b"secret", 0))
    assert values(Recording.from_pcap(old)) == [b"secret"]
    with pytest.raises(DecodeError, match="magic 0 cannot be masked"):
        Recording.from_pcap(old, mask=mask_all("values"))


def test_secrets_are_never_kept(tmp_path: Path) -> None:
    setting = AlterableConfig(name="listener.sasl.jaas.config", value="password=hunter2")
    plain = AlterableConfig(name="retention.ms", value="1000")
    configs = AlterConfigsRequest(resources=[AlterConfigsResource(configs=[setting, plain])])
    data = captured(
        (
            SaslAuthenticateRequest(auth_bytes=b"\0me\0hunter2"),
            SaslAuthenticateResponse(auth_bytes=b"tok"),
            1,
        ),
        (configs, AlterConfigsResponse(), 1),
    )
    recording = Recording.from_pcap(data)
    assert b"hunter2" not in everything(recording, tmp_path)
    assert recording.exchanges[0].asked().auth_bytes == recording.exchanges[0].answer().auth_bytes == b""
    first, second = recording.exchanges[1].asked().resources[0].configs
    assert (first.value, second.value) == ("hidden", "1000")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_login_is_recorded_without_its_tokens(tmp_path: Path, mechanism: str) -> None:
    security = Security("SASL_PLAINTEXT", users={"me": "hunter2-hunter2"}, mechanisms=[mechanism])

    def write(servers: str) -> None:
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "me",
            "sasl.password": "hunter2-hunter2",
        }
        with Producer(servers, config=settings) as producer:
            producer.send("orders", b"x").result(timeout=10)

    with tapped(security=security) as (tap, servers):
        write(servers)
        data = tap.capture()
    recording = Recording.from_pcap(data)
    assert sum(each.api == "SaslAuthenticate" for each in recording.exchanges) >= 1
    kept = everything(recording, tmp_path)
    for text in (b"hunter2", b"n=me", b"i=4096"):
        assert text not in kept
    with KafkaBroker() as broker:  # without a login
        assert recording.play_to(broker.bootstrap_servers) == []
    if mechanism == "PLAIN":
        with recording.cluster() as cluster:
            write(cluster.bootstrap_servers)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mask_all(),
        lambda: mask_all("everything"),
        lambda: mask_fields(),
        lambda: mask_fields("a..b"),
        lambda: mask_matches("("),
        lambda: mask_all("values", topics="*"),
    ],
)
def test_a_rule_that_is_none_is_refused(make: Callable[[], MaskRule]) -> None:
    with pytest.raises(ConfigError):
        make()


def test_a_function_that_returns_no_bytes_is_refused() -> None:
    rule = mask_with(lambda data: data.decode())  # type: ignore[arg-type,return-value]
    with pytest.raises(DecodeError, match="no bytes"):
        Recording.from_pcap(capture(), mask=rule)


def test_the_page_of_limits_names_those_of_the_code() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "limits.md").read_text("utf-8")
    rows = [line.split(" | ")[1] for line in page.partition("\n## Recordings\n")[2].splitlines()[3:]]
    assert rows == [
        f"{files.UNPACKED_BYTES_MAX >> 30} GiB",
        f"{cluster.FRAME_BYTES_MAX >> 20} MiB",
        str(cluster.CONNECTIONS_MAX),
        str(cluster.UNRECORDED_MAX),
        f"{application.PAUSE_MS_MAX // 1000} s",
    ]
    assert application.FRAME_BYTES_MAX == cluster.FRAME_BYTES_MAX


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recording.from_pcap(capture()).save(tmp_path / "it.rec")
    monkeypatch.setattr(files, "UNPACKED_BYTES_MAX", 1000)
    with pytest.raises(DecodeError, match="unpacks to more than 1000 bytes"):
        Recording.load(tmp_path / "it.rec")
