"""Tests that Spark can compile the Java code of Penstock's plans without warnings about its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from cloudevents_cases import READING, batch_of, parts_of
from penstock.cloudevents import partitionkey_mapper
from penstock.spark import from_cloudevents, to_cloudevents
from penstock.spark.source.schema import EVENT_COLUMNS

pytestmark = pytest.mark.spark

HUGE = 64 * 1024
"""The most bytes that a Java method may have; longer methods are not compiled."""

EVENT = (
    "cast(id as string) id, '/s' source, 't' type, timestamp_micros(id) time, cast('a' as binary) data, "
    "'application/json' datacontenttype, map('note', 'n') extensions, 'k' ce_partitionkey, "
    + ", ".join(f"timestamp_micros(id + {n}) ce_when{n}" for n in range(12))
)


@pytest.fixture(scope="module")
def records(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Write records to a file and return a frame of it.

    Spark would compute constant rows while planning.
    """
    path = str(tmp_path_factory.mktemp("codegen") / "records")
    batch = batch_of([parts_of(case["read"]) for case in READING])
    spark.createDataFrame(pa.Table.from_batches([batch])).write.parquet(path)
    return spark.read.parquet(path)


READ: dict[str, dict[str, Any]] = {
    "as it is": {},
    "every column": {"columns": tuple(EVENT_COLUMNS)},
    "binary mode": {"modes": "binary", "columns": tuple(EVENT_COLUMNS)},
    "one column": {"modes": "binary", "columns": ("time",)},
    "lenient": {"profile": "lenient"},
}

WRITTEN: dict[str, dict[str, Any]] = {
    "as it is": {},
    "errors": {"errors": "column"},
    "keys": {"key_mapper": partitionkey_mapper},
    "structured": {"mode": "structured"},
}


def cases(options: dict[str, dict[str, Any]]) -> list[Any]:
    """Return the options as test parameters; those in `SLOW` are marked slow.

    Each case takes three seconds of CPU.
    """
    marks = {name: [pytest.mark.slow] if name in SLOW else [] for name in options}
    return [pytest.param(each, id=name, marks=marks[name]) for name, each in options.items()]


SLOW = {"every column", "lenient", "keys"}


@pytest.mark.parametrize("options", cases(READ))
def test_events_are_read_by_code_that_compiles(spark: Any, records: Any, options: dict[str, Any]) -> None:
    runs_quietly(spark, from_cloudevents(records, **options))


@pytest.mark.parametrize("options", cases(WRITTEN))
def test_events_are_written_by_code_that_compiles(spark: Any, options: dict[str, Any]) -> None:
    runs_quietly(spark, to_cloudevents(spark.range(10).selectExpr(*split(EVENT)), **options))


def test_code_that_is_too_long_would_be_noticed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test puts all rules into one Java method, for which the checks of the other tests must fail."""
    monkeypatch.setattr("penstock.spark.functions.to_cloudevents.apart", lambda array: array)
    frame = to_cloudevents(spark.range(10).selectExpr(*split(EVENT)), errors="column")
    assert min(method_sizes(frame)) < 0
    with log_of(spark) as log, pytest.raises(Exception, match="64 KB"):
        frame.toArrow()
    assert "64 KB" in log() or "too long" in log()


def test_a_fallback_to_interpretation_would_fail_every_test_here(spark: Any) -> None:
    for setting, value in (("fallback", "false"), ("factoryMode", "CODEGEN_ONLY"), ("wholeStage", "true")):
        assert spark.conf.get(f"spark.sql.codegen.{setting}") == value


def split(columns: str) -> list[str]:
    """Return the items of a list of SQL expressions separated by commas."""
    items, depth = [""], 0
    for character in columns:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return items


def runs_quietly(spark: Any, frame: Any) -> None:
    with log_of(spark) as log:
        assert all(0 <= size < HUGE for size in method_sizes(frame))
        frame.toArrow()
    assert not log()


def method_sizes(frame: Any) -> list[int]:
    """Return the bytes of the longest Java method of each generated stage; -1 if it does not compile."""
    stages = frame._jdf.queryExecution().debug().codegenToSeq()
    return [stages.apply(place)._3().maxMethodCodeSize() for place in range(stages.size())]


@contextmanager
def log_of(spark: Any) -> Iterator[Callable[[], str]]:
    """Yield a function that returns what Spark has logged in the block, warnings and errors only."""
    jvm = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    written = jvm.java.io.StringWriter()
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    appender = log4j.core.appender.WriterAppender.createAppender(layout, None, written, "test", False, True)
    appender.start()
    root.addAppender(appender, log4j.Level.WARN, None)
    configurator = log4j.core.config.Configurator
    configurator.setLevel("org.apache.spark.sql", log4j.Level.WARN)
    context.updateLoggers()
    try:
        yield lambda: str(written.toString())
    finally:
        configurator.setLevel("org.apache.spark.sql", log4j.Level.ERROR)
        root.removeAppender("test")
        context.updateLoggers()
