"""Finds in DuckDB's plan how many rows a query needs; lists the ranges that it fetches, for EXPLAIN."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.model import OffsetRange, TopicPartition
from penstock.queries.dataset import RecordDataset
from penstock.queries.pushdown.wanted import EVERYTHING
from penstock.queries.sources import Ask, TopicSource

if TYPE_CHECKING:
    import pyarrow.compute as pc

_LIMITS = ("STREAMING_LIMIT", "LIMIT")
_SCAN = "PYTHON_ARROW_SCAN"
_SCAN_INFO = {"Function", "Projections", "Estimated Cardinality", "Text"}
"""The keys that a scan without a filter may have in DuckDB's plan. A scan with other keys may have a
filter, so all its rows are read.
"""

ROWS_MAX = 1_000_000
"""The largest LIMIT that is passed to a scan. With a larger one, the scan continues until DuckDB has enough
rows and ends it.
"""


class Rows(NamedTuple):
    """The rows of a table that a query needs: the first `limit`, the last `newest` per partition, or all."""

    limit: int | None = None
    newest: int | None = None


ALL_ROWS = Rows()


def rows_taken(plan_json: str) -> Rows:
    """Return the rows that a plan needs: the first n for a LIMIT n over one unfiltered scan, else all.

    `plan_json` is DuckDB's plan; one of an unknown form needs all rows.
    """
    try:
        (node,) = json.loads(plan_json)
        return _rows(node)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Rows()


def _rows(node: dict[str, Any]) -> Rows:
    while node["name"] == "PROJECTION":
        (node,) = node["children"]
    info = node["extra_info"]
    if node["name"] in _LIMITS:
        count = int(info["Limit"]) + int(info.get("Offset", 0))
        (node,) = node["children"]
        while node["name"] == "PROJECTION":
            (node,) = node["children"]
        return Rows(limit=count) if _is_plain_scan(node) and count <= ROWS_MAX else Rows()
    return Rows()


def _is_plain_scan(node: dict[str, Any]) -> bool:
    return node["name"] == _SCAN and _SCAN_INFO.issuperset(node["extra_info"])


class NotingDataset(RecordDataset):
    """A data set without rows that records the requests of scans, to find out what a query would fetch."""

    def __init__(self, dataset: RecordDataset, rows: Rows = ALL_ROWS) -> None:
        super().__init__(dataset.source, dataset.shape)
        self._rows = rows
        self.asks: list[Ask] = []
        self.columns: list[list[str]] = []
        """The columns of each scan, including those that its filter uses."""

    def batches(
        self,
        columns: Sequence[str],
        filter: pc.Expression | None,
        limit: int | None = None,
        newest: int | None = None,
    ) -> Any:
        """Record the request in `asks` and `columns`, and return no batches."""
        self.columns.append(self.decoded(columns, filter))
        self.asks.append(self.ask(columns, filter, self._rows.limit, self._rows.newest))
        return iter(())


def fetch_table(noted: Mapping[str, NotingDataset], sizes: Mapping[TopicPartition, int]) -> pa.Table:
    """Return a table of the offset ranges that a query would fetch, with a row for each range of each scan.

    `sizes` are the sizes of whole partitions in bytes, as far as brokers report them. Raises as
    `penstock.read_topic`.
    """
    rows: list[dict[str, Any]] = []
    for name, dataset in noted.items():
        source = dataset.source
        whole = {
            TopicPartition(one.topic, one.partition): one.size
            for one in source.plan(Ask(EVERYTHING, ("partition",)))
        }
        for ask in dataset.asks:
            rows += _reading(name, source, ask, whole, sizes)
        if not dataset.asks:
            rows.append(_row(name, "at most all of it: what is read follows from the rows of another table"))
    return pa.Table.from_pylist(rows, FETCHES)


FETCHES: pa.Schema = pa.schema(
    [
        ("table", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("estimated_bytes", pa.int64()),
        ("columns", pa.string()),
        ("note", pa.string()),
    ]
)


def _reading(
    name: str, source: Any, ask: Ask, whole: Mapping[TopicPartition, int], sizes: Mapping[TopicPartition, int]
) -> list[dict[str, Any]]:
    if not isinstance(source, TopicSource):
        return [_row(name, "files of this machine are read", columns=", ".join(ask.columns))]
    ranges = cut(source.plan(ask), ask)
    if not ranges:
        return [_row(name, "nothing is fetched")]
    found = []
    for one in ranges:
        tp = TopicPartition(one.topic, one.partition)
        size = sizes.get(tp)
        estimate = None if size is None or not whole.get(tp) else size * one.size // whole[tp]
        if source.answers_without_reading(ask):
            estimate = 0
        found.append(
            {
                "table": name,
                "partition": one.partition,
                "first_offset": one.start,
                "end_offset": one.end,
                "estimated_bytes": estimate,
                "columns": ", ".join(ask.columns),
                "note": _note(source, ask),
            }
        )
    return found


def cut(ranges: Sequence[OffsetRange], ask: Ask) -> list[OffsetRange]:
    """Shorten `ranges` to the offsets that the limit of `ask` needs, if each offset has a record."""
    if ask.newest is not None:
        return [one._replace(start=max(one.start, one.end - ask.newest)) for one in ranges]
    if ask.limit is None:
        return list(ranges)
    found, left = [], ask.limit
    for one in ranges:
        if left:
            found.append(one._replace(end=min(one.end, one.start + left)))
            left -= found[-1].size
    return found


def _note(source: TopicSource, ask: Ask) -> str | None:
    if source.answers_without_reading(ask):
        return "answered from offsets"
    if ask.wanted.time_end_ms is not None and source.max_lateness_ms is None:
        return "read to the end, since late records may be there: max_lateness ends it"
    if ask.wanted.keys is not None and source.key_partitioner is None:
        return "all partitions are read for the keys: key_partitioner says where they are"
    return None


def _row(name: str, note: str, columns: str | None = None) -> dict[str, Any]:
    return {"table": name, "note": note, "columns": columns}


def partition_sizes(config: Mapping[str, object], servers: Any) -> dict[TopicPartition, int]:
    """Return a dict from partition to its size in bytes, for brokers that report sizes."""
    from penstock.client import Admin

    sizes: dict[TopicPartition, int] = {}
    try:
        with Admin(servers, config=dict(config)) as admin:
            for directory in admin.describe_log_dirs():
                for tp, size in directory.partitions.items():
                    sizes[tp] = max(size, sizes.get(tp, 0))
    except PenstockError:
        return {}
    return sizes
