"""Tests of compressed batches beyond a reader's size limit: the error names the batch and the remedy."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Broker, Consumer, TopicPartition, read_log, read_topic, scan_topic, write_topic
from penstock.errors import UnpackLimitError
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.driver import Driver07
from penstock.v07.server import Broker07

NewTopic = Callable[..., str]

LARGE = 3_000_000
WRITE = {"max.request.size": 8_000_000, "batch.size": 8_000_000}
BYTES, RECORDS = "penstock.unpack.max.bytes", "penstock.unpack.max.records"


def written(servers: str, topic: str, codec: str = "zstd") -> str:
    """Write two batches to a topic: a small one, and one of 3 MB when it is decompressed."""
    for values in ([b"first"], [bytes(LARGE)]):
        write_topic(pa.table({"value": pa.array(values)}), topic, servers, compression=codec, config=WRITE)
    return topic


def consumer(servers: str, topic: str, **options: object) -> Consumer:
    reader = Consumer(servers, {name.replace("_", "."): value for name, value in options.items()})
    reader.assign([TopicPartition(topic, 0)])
    reader.seek(TopicPartition(topic, 0), 0)
    return reader


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_beyond_the_limit_is_an_error_that_names_it(
    servers: str, new_topic: NewTopic, codec: str
) -> None:
    topic = written(servers, new_topic(1), codec)
    told = rf"{topic}-0: .*offset 1: .*more than 1000000 bytes.*{BYTES}"
    with pytest.raises(UnpackLimitError, match=told):
        read_topic(topic, servers, config={BYTES: 1_000_000})
    pieces = scan_topic(topic, servers, config={BYTES: 1_000_000}, batch_bytes=1)
    assert next(pieces)["value"].to_pylist() == [b"first"]
    with pytest.raises(UnpackLimitError, match=told):
        next(pieces)
    assert read_topic(topic, servers).num_rows == 2
    assert read_topic(topic, servers, config={BYTES: LARGE + 1000}).num_rows == 2


def test_a_consumer_hands_out_what_comes_before_and_goes_on_behind(servers: str, new_topic: NewTopic) -> None:
    topic = written(servers, new_topic(1))
    with consumer(servers, topic, penstock_unpack_max_bytes=1_000_000) as reader:
        assert [record.value for record in reader.poll(5_000)] == [b"first"]
        for _ in range(2):
            with pytest.raises(UnpackLimitError, match=rf"{topic}-0: .*offset 1: .*{BYTES}"):
                reader.poll(5_000)
        write_topic(pa.table({"value": pa.array([b"last"])}), topic, servers)
        reader.seek(TopicPartition(topic, 0), 2)
        assert [record.value for record in reader.poll(5_000)] == [b"last"]


def test_so_does_a_consumer_of_arrow(servers: str, new_topic: NewTopic) -> None:
    topic = written(servers, new_topic(1))
    with consumer(servers, topic, penstock_unpack_max_bytes=1_000_000) as reader:
        batch = reader.poll_arrow(5_000)
        assert batch is not None
        assert batch["value"].to_pylist() == [b"first"]
        with pytest.raises(UnpackLimitError, match=rf"{topic}-0: .*offset 1: .*{BYTES}"):
            reader.poll_arrow(5_000)


def test_records_have_a_limit_too(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    values = pa.table({"value": pa.array([b""] * 5000)})
    write_topic(values, topic, servers, compression="zstd")
    with pytest.raises(UnpackLimitError, match=rf"{topic}-0: .*more than 4999; the limit is {RECORDS}"):
        read_topic(topic, servers, config={RECORDS: 4999})
    reader = consumer(servers, topic, penstock_unpack_max_records=4999)
    with reader, pytest.raises(UnpackLimitError, match=rf"{topic}-0: .*offset 0: .*{RECORDS}"):
        reader.poll(5_000)
    assert read_topic(topic, servers, config={RECORDS: 5000}).num_rows == 5000


def test_a_poll_for_few_records_makes_few(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    count = 300_000
    config = {"max.request.size": 8_000_000, "batch.size": 8_000_000}
    write_topic(
        pa.table({"value": pa.array([b""] * count)}), topic, servers, compression="zstd", config=config
    )
    with consumer(servers, topic) as reader:
        assert len(reader.poll(5_000, max_records=10)) == 10
    with consumer(servers, topic) as reader:
        tracemalloc.start()
        assert len(reader.poll(5_000, max_records=10)) == 10
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        seen = 10
        while seen < count:
            records = reader.poll(5_000, max_records=50_000)
            assert records
            assert [records[0].offset, records[-1].offset] == [seen, seen + len(records) - 1]
            seen += len(records)
    assert peak < 40 << 20  # as objects all of them take 130 MB


def test_directories_take_the_limits_as_arguments(tmp_path: Path) -> None:
    with Broker(tmp_path, log_retention_ms=-1) as broker:
        written(broker.bootstrap_servers, "t")
    with pytest.raises(UnpackLimitError, match=r"t-0: .*offset 1: .*the arguments unpack_max_bytes"):
        read_log(tmp_path, "t", unpack_max_bytes=1_000_000)
    with pytest.raises(UnpackLimitError, match="unpack_max_records"):
        read_log(tmp_path, "t", unpack_max_records=0)
    assert read_log(tmp_path, "t").num_rows == 2


@pytest.mark.parametrize("codec", [CompressionCodec.GZIP, CompressionCodec.SNAPPY])
def test_kafka_0_7_has_the_same_limits(tmp_path: Path, codec: CompressionCodec) -> None:
    with Broker07(tmp_path) as broker:
        driver = Driver07(broker.host, broker.port)
        driver.send("t", [b"1", b"2", bytes(LARGE // 10)], partition=0, codec=codec)
        driver.latest("t", 0)
        where = f"{broker.host}:{broker.port}"
        with pytest.raises(UnpackLimitError, match=rf"t-0: .*more than 1000 bytes.*{BYTES}"):
            read_topic("t", where, protocol="0.7", config={BYTES: 1000})
        with pytest.raises(UnpackLimitError, match=rf"t-0: .*more than 2 records.*{RECORDS}"):
            read_topic("t", where, protocol="0.7", config={RECORDS: 2})
        assert read_topic("t", where, protocol="0.7").num_rows == 3
        driver.connection.close()
    with pytest.raises(UnpackLimitError, match=r"t-0: .*more than 1000 bytes"):
        read_log(tmp_path, "t", unpack_max_bytes=1000)
    assert read_log(tmp_path, "t").num_rows == 3
