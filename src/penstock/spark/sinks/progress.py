"""The progress of a running query, and the reason why it stopped in one sentence."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.source.planning import backlog_rows, offsets_from_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


TOPICS_SHOWN_MAX = 5

OBSERVED = "landed"
"""The name of the metrics in which a query of `land` counts records, since a row of it is a file."""

_CLASS_NAME = re.compile(r"(?:\w+\.)+Python\w*Stream\w*@")


@dataclass(frozen=True, slots=True)
class Progress:
    """The numbers of one micro-batch of a query, for display.

    `lag` is the number of offsets of its topics that were not yet read when the micro-batch was planned, or
    None if the query has other kinds of sources. `watermark` is None before the first event time.
    """

    batch_id: int
    rows: int
    rows_per_second: float
    duration_ms: int
    lag: int | None
    watermark: datetime | None
    description: str = ""
    """The source of the rows: ``penstock[orders]``, or Spark's description of a source of another kind."""


def progress_of(report: Mapping[str, Any]) -> Progress:
    """Return the `Progress` for an entry of `StreamingQuery.recentProgress`: Spark's object, or its JSON."""
    landed = _landed_rows(report)
    watermark = report.get("eventTime", {}).get("watermark") if report.get("eventTime") else None
    return Progress(
        batch_id=report["batchId"],
        rows=report["numInputRows"] if landed is None else landed,
        rows_per_second=_rate(report.get("processedRowsPerSecond"))
        if landed is None
        else _rate(1000 * landed / max(1, report.get("batchDuration") or 0)),
        duration_ms=report.get("batchDuration") or 0,
        lag=_lag(report["sources"]),
        watermark=_moment(watermark),
        description=" + ".join(map(_described, report["sources"])),
    )


def _landed_rows(report: Mapping[str, Any]) -> int | None:
    """Return the number of records that a query of `land` has landed, or None for other queries."""
    found = (report.get("observedMetrics") or {}).get(OBSERVED)
    try:
        return None if found is None else int(found["rows"])
    except (KeyError, TypeError, ValueError):  # another query's metrics under this name
        return None


def _described(source: Mapping[str, Any]) -> str:
    """Return the description of a source; if it is only a class name, the topics in its offsets.

    For a Python source, Spark's description is the name of a class.
    """
    named = str(source.get("description") or "")
    offsets = _offsets(source.get("endOffset"))
    if not offsets or (named and _CLASS_NAME.match(named) is None):
        return named
    topics = sorted({tp.topic for tp in offsets})
    more = f", {len(topics) - TOPICS_SHOWN_MAX} more" if len(topics) > TOPICS_SHOWN_MAX else ""
    return f"penstock[{', '.join(topics[:TOPICS_SHOWN_MAX])}{more}]"


def _rate(value: object) -> float:
    """Return a rate as a float; 0.0 for NaN and infinity, which Spark reports if a batch took 0 ms."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value < float("inf") else 0.0


def _moment(text: str | None) -> datetime | None:
    moment = datetime.fromisoformat(text) if text else None
    return moment if moment is not None and moment.timestamp() > 0 else None


def _lag(sources: list[Mapping[str, Any]]) -> int | None:
    total = 0
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is None or latest is None:
            return None
        total += backlog_rows(end, latest)
    return total


def _offsets(value: Any) -> dict[Any, int] | None:
    """Return the offsets of one source, JSON text or an object; None if the source reads no topics."""
    import json

    try:
        document = json.loads(value) if isinstance(value, str) else value
        return offsets_from_json(document) if isinstance(document, dict) else None
    except ValueError:
        return None


def follow(query: StreamingQuery, show: Callable[[Progress], None], *, every_seconds: float = 0.2) -> None:
    """Call `show` for every micro-batch of `query`, in order, until the query ends.

    Raises:
        PenstockError: the query failed; the message is one line.
    """
    shown = -1
    while True:
        active = query.isActive
        for report in query.recentProgress:
            progress = progress_of(report)
            if progress.batch_id > shown:
                shown = progress.batch_id
                show(progress)
        if not active:
            break
        time.sleep(every_seconds)
    error = query.exception()
    if error is not None:
        raise PenstockError(reason(error)) from error


_OUR_ERROR = re.compile(r"\bpenstock(?:\.\w+)*\.[A-Z]\w*: (.+)")
_PYTHON_ERROR = re.compile(r"^(?:\w+\.)*([A-Z]\w*(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)
_SPARK_ERROR = re.compile(r"^(?:[\w.]+: )?\[[A-Z_.0-9]+\] (.+)$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """Return the one line of a Spark exception that states the cause of the failure.

    Spark wraps the error of a Python source or function in many lines; the last Python error in them is the
    cause. For an error of this package, only its message is returned.
    """
    if isinstance(error, PenstockError):
        return str(error)
    text = str(error)
    ours = _OUR_ERROR.findall(text)
    if ours:
        return str(ours[-1])
    causes = [match for match in _PYTHON_ERROR.finditer(text) if not match[1].startswith("Py4J")]
    if causes:
        return f"{causes[-1][1]}: {causes[-1][2]}"
    spark = _SPARK_ERROR.search(text)
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return spark[1] if spark else first.strip()
