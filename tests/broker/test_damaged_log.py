"""Tests of a broker with damaged and missing segments: readers get an error, and other topics still work."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from broker.handlers.test_fetch import fetch
from penstock import Broker, read_log, read_topic, write_topic
from penstock.broker.config.values import BrokerConfig
from penstock.broker.metadata.stores import open_store
from penstock.clock import ManualClock
from penstock.errors import PenstockError
from penstock.protocol.error_codes import ErrorCode
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import split_batches

ROWS = 400


def offsets_of(answer: Any) -> list[int]:
    pieces = answer.records if isinstance(answer.records, list) else [answer.records]
    data = b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)
    rows = [row for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)]
    return [row.offset for row in rows]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return a data directory with several segments of one topic, and another topic."""
    with Broker(tmp_path / "data", log_segment_bytes="2048") as broker:
        for start in range(0, ROWS, 20):
            rows = pa.table({"value": [b"%d" % n * 10 for n in range(start, start + 20)]})
            write_topic(rows, "t", broker.bootstrap_servers)
        write_topic(rows, "other", broker.bootstrap_servers)
    return tmp_path / "data"


def flip_length(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[10] ^= 0x80
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [flip_length, remove])
def test_readers_get_an_error_and_no_fewer_rows(data_dir: Path, harm: Any) -> None:
    files = sorted((data_dir / "t-0").glob("*.log"))
    assert len(files) > 4
    harm(files[2])
    with pytest.raises(PenstockError, match="damaged"):
        read_log(data_dir, "t")
    with Broker(data_dir) as broker:
        with pytest.raises(PenstockError):
            read_topic("t", broker.bootstrap_servers, config={"default.api.timeout.ms": 2000})
        behind = int(files[3].stem)
        assert read_topic("t", broker.bootstrap_servers, start=behind).num_rows == ROWS - behind
        assert read_topic("other", broker.bootstrap_servers).num_rows == 20
        assert read_topic(
            "t", bootstrap_servers=broker.bootstrap_servers, end=int(files[2].stem)
        ).num_rows == int(files[2].stem)


def test_a_fetch_says_that_asking_again_is_of_no_use_and_the_log_says_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"log.dirs": str(tmp_path)})
    store = open_store(config, clock)
    node = make_node(store, clock)
    make_topic(node, segment_bytes="300")
    for turn in range(12):
        produce(node, batch_of(b"%d" % turn))
    store.close()
    files = sorted((tmp_path / "t-0").glob("*.log"))
    data = files[1].read_bytes()
    files[1].write_bytes(data[:-3])
    store = open_store(config, clock)
    node = make_node(store, clock)
    first, behind = int(files[1].stem), int(files[2].stem)
    (answer,) = fetch(node, (0, 0))
    assert offsets_of(answer) == list(range(behind - 1)), "up to the damage, not past it"
    for _ in range(50):
        (answer,) = fetch(node, (0, behind - 1))
        assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    assert offsets_of(fetch(node, (0, first))[0]) == list(range(first, behind - 1))
    assert offsets_of(fetch(node, (0, behind))[0]) == list(range(behind, 12))
    lines = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(lines) == 1
    assert str(files[1]) in lines[0].getMessage()
    store.close()
