"""Tests of reading topics from a data directory to Arrow, without a broker."""

from __future__ import annotations

import datetime
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from log.log_laws import T0, add, batch, fill, message
from penstock.errors import ConfigError, CorruptRecordError, StorageError
from penstock.log import DataDirectory, DiskLog, LogConfig
from penstock.log.disk.scan import NAMES_SHOWN_MAX, find_topic, read_log, scan_log
from penstock.model import COLUMN_NAMES, TopicPartition
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_batch, encode_marker
from penstock.records.compression.codecs import CompressionCodec

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    """Create a data directory with a topic of two partitions, an empty topic, and an internal topic.

    Partition 0 of topic t has 60 records, partition 1 has 30. The directory's logs stay open.
    """
    directory = DataDirectory(str(tmp_path))
    for topic, number, batches in (("t", 0, 20), ("t", 1, 10), ("u", 0, 0), ("__consumer_offsets", 7, 2)):
        log = directory.create_log(TopicPartition(topic, number), None, SMALL, now_ms=T0)
        fill(log, batches)
    yield directory
    directory.close()


def offsets(table: Any) -> list[tuple[int, int]]:
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def both(zero: range, one: range) -> list[tuple[int, int]]:
    return [(0, offset) for offset in zero] + [(1, offset) for offset in one]


def test_all_columns_of_all_partitions(data: DataDirectory) -> None:
    table = read_log(data.path, "t")
    assert table.schema.names == list(COLUMN_NAMES)
    assert offsets(table) == both(range(60), range(30))
    row = table.slice(31, 1).to_pylist()[0]
    assert row.pop("timestamp") == datetime.datetime.fromtimestamp((T0 + 310) / 1000, datetime.UTC)
    assert row == {
        "key": b"k31",
        "value": b"v" * 20,
        "topic": "t",
        "partition": 0,
        "offset": 31,
        "timestampType": 0,
        "headers": [],
    }


def test_the_segments_of_any_codec_are_read(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), SMALL, now_ms=T0)
    for number, codec in enumerate(
        [
            CompressionCodec.NONE,
            CompressionCodec.GZIP,
            CompressionCodec.SNAPPY,
            CompressionCodec.LZ4,
            CompressionCodec.ZSTD,
        ]
        * 4
    ):
        first = log.end_offset
        times = [T0 + first + n for n in range(5)]
        made = batch(first, times, value=b"%d" % number * 50, codec=codec)
        add(log, made, first=first, last=first + 4, timestamp=times[-1])
    table = read_log(tmp_path)
    assert table["offset"].to_pylist() == list(range(100))
    assert table["value"].to_pylist() == [b"%d" % (n // 5) * 50 for n in range(100)]
    log.close()


@pytest.mark.parametrize(
    ("start", "end", "zero", "one"),
    [
        ("earliest", "latest", range(60), range(30)),
        ("latest", "latest", range(0), range(0)),
        (-2, -1, range(60), range(30)),
        (5, "latest", range(5, 60), range(5, 30)),
        (31, 40, range(31, 40), range(0)),
        (1000, "latest", range(0), range(0)),
        ("earliest", 1000, range(60), range(30)),
        (40, 20, range(0), range(0)),
        ({0: 58}, "latest", range(58, 60), range(30)),
        ({1: 28, 0: -1}, {0: 3}, range(0), range(28, 30)),
        ("earliest", {1: 2}, range(60), range(2)),
    ],
)
def test_ranges(data: DataDirectory, start: Any, end: Any, zero: range, one: range) -> None:
    table = read_log(data.path, "t", start=start, end=end, columns=["partition", "offset"])
    assert offsets(table) == both(zero, one)


def moment(ms: int, us: int = 0) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms // 1000, datetime.UTC) + datetime.timedelta(
        milliseconds=ms % 1000, microseconds=us
    )


def test_times(data: DataDirectory) -> None:
    def read(**options: Any) -> list[tuple[int, int]]:
        return offsets(read_log(data.path, "t", **options))

    assert read(start=moment(T0)) == both(range(60), range(30))
    assert read(start=moment(T0 + 100)) == both(range(10, 60), range(10, 30))
    assert read(start=moment(T0 + 101), end=moment(T0 + 250)) == both(range(11, 25), range(11, 25))
    assert read(start=moment(T0 + 100, us=1), end=moment(T0 + 120)) == both(range(11, 12), range(11, 12))
    assert read(start=moment(T0 + 400)) == both(range(40, 60), range(0))
    assert read(start=moment(T0 + 9999)) == []
    zone = datetime.timezone(datetime.timedelta(hours=5))
    assert read(start=moment(T0 + 590).astimezone(zone)) == both(range(59, 60), range(0))
    with pytest.raises(ConfigError, match="without a time zone"):
        read(start=datetime.datetime(2024, 1, 1))


def test_columns_come_in_the_order_asked_for(data: DataDirectory) -> None:
    names = ["value", "offset", "topic"]
    assert read_log(data.path, "t", columns=names).schema.names == names
    assert read_log(data.path, "u", columns=names).schema.names == names
    assert read_log(data.path, "u", columns=names).num_rows == 0
    assert read_log(data.path, "t", columns=["key"], end=1)["key"].to_pylist() == [b"k0", b"k0"]


@pytest.mark.parametrize(("partitions", "wanted"), [(1, {1}), ([0], {0}), ((0, 1), {0, 1}), ([], set())])
def test_partitions(data: DataDirectory, partitions: Any, wanted: set[int]) -> None:
    table = read_log(data.path, "t", partitions=partitions)
    assert set(table["partition"].to_pylist()) == wanted


def test_what_is_not_there_is_told_with_what_is(data: DataDirectory) -> None:
    for call in (read_log, scan_log):
        with pytest.raises(ConfigError, match=r"no topic 'x' in .*, which holds __consumer_offsets, t, u$"):
            call(data.path, "x")
        with pytest.raises(ConfigError, match=r"topic t has no partition 4 here, only 0, 1$"):
            call(data.path, "t", partitions=[0, 4])
        with pytest.raises(ConfigError, match=r"name the topic: .* holds __consumer_offsets, t, u$"):
            call(data.path)
        with pytest.raises(ConfigError, match="no column 'offsets'; known: key, value"):
            call(data.path, "t", columns=["offsets"])
        with pytest.raises(ConfigError, match="start is 'beginning'"):
            call(data.path, "t", start="beginning")
        with pytest.raises(ConfigError, match="end is offset -3"):
            call(data.path, "t", end=-3)
        with pytest.raises(ConfigError, match="start names partition 5"):
            call(data.path, "t", start={5: 0})
        with pytest.raises(ConfigError, match="read_uncommitted or read_committed"):
            call(data.path, "t", isolation="committed")
    with pytest.raises(ConfigError, match="must be positive"):
        scan_log(data.path, "t", batch_bytes=0)
    with pytest.raises(StorageError, match="no such file or directory"):
        read_log(data.path + "/none")


def test_directories_without_topics_or_with_many(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no topics"):
        read_log(tmp_path)
    for number in range(NAMES_SHOWN_MAX + 5):
        (tmp_path / f"t{number:02d}-0").mkdir()
    with pytest.raises(ConfigError, match=r"t00, t01, .* and 5 more"):
        read_log(tmp_path)
    assert read_log(tmp_path, "t00").num_rows == 0


def test_the_only_topic_and_a_partitions_own_directory(tmp_path: Path) -> None:
    for name in ("only-3", "__inner-0"):
        log = DiskLog(str(tmp_path / name), SMALL, now_ms=T0)
        fill(log, 2)
        log.close()
    assert set(read_log(tmp_path)["topic"].to_pylist()) == {"only"}
    assert read_log(tmp_path, "__inner").num_rows == 6
    table = read_log(tmp_path / "only-3")
    assert offsets(table) == [(3, offset) for offset in range(6)]
    assert find_topic(str(tmp_path / "only-3"), "only") == {
        TopicPartition("only", 3): str(tmp_path / "only-3")
    }
    with pytest.raises(ConfigError, match="is a partition of topic only, not x"):
        read_log(tmp_path / "only-3", "x")


def test_a_scan_yields_batches_of_about_the_size_asked_for(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), LogConfig(segment_bytes=1 << 20), now_ms=T0)
    rng = random.Random(3)
    value = rng.randbytes(1000)
    for _ in range(300):
        first = log.end_offset
        add(log, batch(first, [T0] * 10, value=value), first=first, last=first + 9)
    log.close()
    whole = read_log(tmp_path)
    assert whole.num_rows == 3000
    for size in (1, 100_000, 500_000, 1 << 30):
        pieces = list(scan_log(tmp_path, batch_bytes=size))
        assert [o for piece in pieces for o in piece["offset"].to_pylist()] == list(range(3000))
        assert all(piece["value"][0].as_py() == value for piece in pieces)
        limit = max(size, 10_000) + 600_000
        assert max(piece.nbytes for piece in pieces) < limit
    assert len(list(scan_log(tmp_path, batch_bytes=500_000))) >= 4


def test_nothing_is_written_and_nothing_locked(data: DataDirectory) -> None:
    path = Path(data.path)

    def state() -> dict[str, tuple[int, int]]:
        return {str(f): (f.stat().st_size, f.stat().st_mtime_ns) for f in sorted(path.rglob("*"))}

    before = state()
    read_log(path, "t", isolation="read_committed", start=moment(T0 + 50))
    assert state() == before
    for index in path.rglob("*index"):
        index.unlink()
    before = state()
    assert read_log(path, "t", start=moment(T0 + 50)).num_rows == 80
    assert state() == before


def test_a_directory_being_written_is_read_to_its_last_whole_batch(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = DiskLog(str(path), LogConfig(), now_ms=T0)
    fill(log, 20)
    torn = batch(60, [T0, T0])
    with (path / f"{0:020d}.log").open("ab") as file:
        for at in range(len(torn)):
            assert read_log(tmp_path).num_rows == 60
            file.write(torn[at : at + 1])
            file.flush()
        assert read_log(tmp_path).num_rows == 62
        file.write(bytes(5000))  # room that a broker has preallocated
        file.flush()
        assert read_log(tmp_path).num_rows == 62
        assert read_log(tmp_path, start=61).num_rows == 1


def test_what_is_appended_later_is_not_waited_for(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), SMALL, now_ms=T0)
    fill(log, 20)
    scan = scan_log(tmp_path, batch_bytes=300)
    first = next(scan)
    fill(log, 20)
    log.delete_before(60)  # what is being read goes away
    assert first.num_rows + sum(piece.num_rows for piece in scan) == 60
    rest = read_log(tmp_path)["offset"].to_pylist()
    assert rest == list(range(rest[0], 120))
    assert 50 < rest[0] <= 60


def test_the_noted_start_counts(data: DataDirectory) -> None:
    data.logs[TopicPartition("t", 0)].delete_before(17)
    data.write_checkpoints()
    assert offsets(read_log(data.path, "t", end=20)) == both(range(17, 20), range(20))
    Path(data.path, "log-start-offset-checkpoint").write_text("?")
    assert read_log(data.path, "t", partitions=0)["offset"][0].as_py() <= 17


def test_older_messages_and_gaps(tmp_path: Path) -> None:
    log = DiskLog(str(tmp_path / "t-0"), LogConfig(segment_bytes=200), now_ms=T0)
    for n in range(20):
        add(log, message(n, b"%d" % n, magic=n // 10, timestamp=T0 + n), first=n, last=n, timestamp=T0 + n)
    add(log, batch(30, [T0, T0], deltas=[0, 7]), first=30, last=37)
    table = read_log(tmp_path)
    assert table["offset"].to_pylist() == [*range(20), 30, 37]
    assert table["value"].to_pylist()[:20] == [b"%d" % n for n in range(20)]
    assert read_log(tmp_path, start=8, end=31)["offset"].to_pylist() == [*range(8, 20), 30]
    assert read_log(tmp_path, start=25)["offset"].to_pylist() == [30, 37]


def transactional(first: int, producer: int, count: int = 2) -> bytes:
    rows = [(b"%d" % producer, b"v", (), T0)] * count
    return encode_batch(
        rows,
        base_offset=first,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
        partition_leader_epoch=0,
    )


def marker(kind: int, at: int, producer: int) -> bytes:
    return encode_marker(
        kind,
        base_offset=at,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=T0,
        partition_leader_epoch=0,
    )


@pytest.fixture
def transactions(tmp_path: Path) -> Path:
    """Create a log with transactional and plain records, and return its path.

    Offsets 0-1, 9-10 and 13 are committed; 2-3, 4-5 and 14-15 are aborted; 6 and 17 are plain. An open
    transaction begins at 18. The others are markers.
    """
    log = DiskLog(str(tmp_path / "t-0"), LogConfig(segment_bytes=300), now_ms=T0)
    steps = [
        (transactional(0, 7), 1),
        (transactional(2, 8), 3),
        (transactional(4, 9), 5),
        (batch(6), 6),
        (marker(ABORT_MARKER, 7, 8), 7),
        (marker(COMMIT_MARKER, 8, 7), 8),
        (transactional(9, 8), 10),
        (marker(ABORT_MARKER, 11, 9), 11),
        (marker(COMMIT_MARKER, 12, 8), 12),
        (batch(13), 13),
        (transactional(14, 7), 15),
        (marker(ABORT_MARKER, 16, 7), 16),
        (batch(17), 17),
        (transactional(18, 9), 19),
        (batch(20), 20),
    ]
    for made, last in steps:
        add(log, made, first=log.end_offset, last=last)
    log.close()
    return tmp_path


def test_uncommitted_reads_show_all_but_markers(transactions: Path) -> None:
    markers = {7, 8, 11, 12, 16}
    assert read_log(transactions)["offset"].to_pylist() == [o for o in range(21) if o not in markers]


@pytest.mark.parametrize("start", range(21))
def test_committed_reads_leave_out_what_was_aborted_or_is_open(transactions: Path, start: int) -> None:
    committed = [0, 1, 6, 9, 10, 13, 17]
    for end in ("latest", 21, 18, 10, 5):
        stop = 21 if end == "latest" else int(end)
        found = read_log(transactions, start=start, end=end, isolation="read_committed")
        wanted = [o for o in committed if start <= o < stop]
        if end in (10, 5):
            # Seen from there, transactions that end later are open still.
            open_since = {10: 4, 5: 0}[stop]
            wanted = [o for o in wanted if o < open_since]
        assert found["offset"].to_pylist() == wanted, (start, end)


def test_a_compacted_segment_waiting_to_be_put_in_place(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = DiskLog(str(path), LogConfig(segment_bytes=500), now_ms=T0)
    fill(log, 12)
    log.close()
    bases = sorted(int(file.name[:20]) for file in path.glob("*.log"))
    (path / f"{bases[1]:020d}.log.swap").write_bytes(batch(bases[1]) + batch(bases[3] - 1))
    kept = [o for o in range(36) if o < bases[1] or o >= bases[3] or o in (bases[1], bases[3] - 1)]
    assert read_log(tmp_path)["offset"].to_pylist() == kept
    (path / f"{bases[1]:020d}.log.cleaned").write_bytes(b"")
    assert read_log(tmp_path)["offset"].to_pylist() == list(range(36))
    (path / f"{bases[0]:020d}.log").rename(path / f"{bases[0]:020d}.log.deleted")
    assert read_log(tmp_path).num_rows == 36 - bases[1]
    (path / f"{bases[2]:020d}.log").rename(path / f"{bases[2]:020d}.log.deleted")
    with pytest.raises(StorageError, match="are missing"):
        read_log(tmp_path)


def test_damage_is_an_error_that_names_the_place(data: DataDirectory, tmp_path: Path) -> None:
    first = tmp_path / "t-0" / f"{0:020d}.log"
    good = first.read_bytes()
    bad = bytearray(good)
    bad[100] ^= 1
    first.write_bytes(bad)
    with pytest.raises(CorruptRecordError, match="checksum"):
        read_log(data.path, "t")
    assert read_log(data.path, "t", start=30).num_rows == 30
    first.write_bytes(good[:-10])
    with pytest.raises(StorageError, match=r"0\.log is damaged: no whole batch"):
        read_log(data.path, "t")
    first.write_bytes(good)
    assert read_log(data.path, "t").num_rows == 90


def test_segments_that_vanish_while_they_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DiskLog(str(tmp_path / "t-0"), SMALL, now_ms=T0)
    fill(log, 20)
    log.close()
    real = os.listdir
    first = tmp_path / "t-0" / f"{0:020d}.log"

    def list_then_delete(path: Any) -> list[str]:
        names = real(path)
        first.unlink(missing_ok=True)
        return names

    monkeypatch.setattr(os, "listdir", list_then_delete)
    assert 0 < read_log(tmp_path, "t").num_rows < 60


def test_kafka_directory_with_everything_in_it(tmp_path: Path) -> None:
    """The directory has the stray files of a Kafka 4 broker, and preallocated indexes as after a crash."""
    log = DiskLog(str(tmp_path / "t-0"), SMALL, now_ms=T0)
    fill(log, 20)
    log.close()
    for index in (tmp_path / "t-0").glob("*index"):
        with index.open("ab") as file:
            file.truncate(10_485_756)
    for name in ("00000000000000000021.snapshot", "00000000000000000000.txnindex", "partition.metadata"):
        (tmp_path / "t-0" / name).write_bytes(b"")
    for name in ("t-1.0123456789abcdef0123456789abcdef-delete", "remote-log-index-cache"):
        shutil.copytree(tmp_path / "t-0", tmp_path / name)
    for name in (
        "cleaner-offset-checkpoint",
        "bootstrap.checkpoint",
        ".lock",
        "recovery-point-offset-checkpoint",
    ):
        (tmp_path / name).write_bytes(b"")
    table = read_log(tmp_path)
    assert table["offset"].to_pylist() == list(range(60))
    assert read_log(tmp_path, start=moment(T0 + 300), end=35)["offset"].to_pylist() == list(range(30, 35))


def test_without_arrow_the_error_names_the_extra(tmp_path: Path) -> None:
    DiskLog(str(tmp_path / "t-0"), now_ms=T0).close()
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from penstock import read_log\n"
        f"read_log({str(tmp_path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: reading into Arrow needs pyarrow: pip install" in done.stderr
