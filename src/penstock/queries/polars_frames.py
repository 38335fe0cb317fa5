"""`scan_polars`: records as a lazy Polars frame with push-down.

Polars passes the columns, the predicate and the number of rows of a query to a source. Conditions on
partitions, offsets and times are read from the predicate's JSON form; those of an unknown form are ignored.
Polars then applies the whole predicate to the rows.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.ipc

from penstock.common.extras import missing
from penstock.errors import ConfigError
from penstock.queries.dataset import RecordDataset, topic_dataset
from penstock.queries.pushdown.wanted import EVERYTHING, Wanted, comparison, is_null, one_of

if TYPE_CHECKING:
    import polars as pl

OPERATORS = {"Eq": "==", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
UNITS = {"Nanoseconds": 1_000, "Microseconds": 1, "Milliseconds": -1_000}
"""A dict from Polars' time units to their number in a microsecond; -n means that one unit has n
microseconds.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = object()


def scan_polars(
    topic: str | RecordDataset, bootstrap_servers: str | Sequence[str] | None = None, **options: Any
) -> pl.LazyFrame:
    """Return a topic as a lazy frame of Polars: ``scan_polars("orders", servers).filter(...).collect()``.

    Columns that are not used are not decoded; conditions on partitions, offsets, times and keys decide what
    is fetched, and ``head(n)`` reads only the first records. Each `collect` reads anew.

    Args:
        topic: the name of a topic, or a data set of `penstock.topic_dataset` or `penstock.log_dataset`.
        bootstrap_servers: ``host:port``, or several; None for a data set.
        options: those of `penstock.topic_dataset`.

    Raises:
        ConfigError: an argument is wrong.
        KafkaError, NetworkError, RequestTimeoutError: as `penstock.topic_dataset`.
        MissingDependencyError: Polars, pyarrow or numpy is not installed.

    An error while Polars reads the topic (in `collect`) is raised as an error of Polars with the same text.
    """
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise missing(error, "scan_polars") from None
    if isinstance(topic, RecordDataset):
        if bootstrap_servers is not None or options:
            raise ConfigError("a data set has its servers and options: leave them out")
        dataset = topic
    elif bootstrap_servers is None:
        raise ConfigError("bootstrap_servers is missing: host:port is needed")
    else:
        dataset = topic_dataset(topic, bootstrap_servers, **options)
    empty = pl.from_arrow(dataset.schema.empty_table())
    assert isinstance(empty, pl.DataFrame)  # a table is no series
    return register_io_source(_source(dataset), schema=empty.schema, is_pure=False)


def _source(dataset: RecordDataset) -> Callable[..., Iterator[pl.DataFrame]]:
    def frames(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        import polars as pl

        names = dataset.schema.names
        columns = names if with_columns is None else with_columns
        looked_at = [] if predicate is None else predicate.meta.root_names()
        decoded = list(dict.fromkeys([*columns, *looked_at])) or ["partition"]
        wanted = EVERYTHING if predicate is None else wanted_by(predicate)
        limit = n_rows if predicate is None else None
        left = n_rows
        with closing(dataset.batches_of(decoded, wanted, limit)) as batches:
            for batch in batches:
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)  # a batch is no series
                if predicate is not None:
                    frame = frame.filter(predicate)
                frame = frame.select(columns)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame
                if left == 0:
                    return

    return frames


def wanted_by(predicate: pl.Expr) -> Wanted:
    """Return a set with all records that a predicate may select; `EVERYTHING` if its form is unknown."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the form may change between releases: that is what is checked
            tree = json.loads(predicate.meta.serialize(format="json"))
        return _wanted(tree)
    except Exception:  # of a form that Polars has no JSON for, or another one than is known
        return EVERYTHING


def _wanted(node: Any) -> Wanted:
    if not isinstance(node, dict) or len(node) != 1:
        return EVERYTHING
    ((kind, inner),) = node.items()
    if kind == "BinaryExpr":
        operator = inner["op"]
        if operator in ("And", "LogicalAnd"):
            return _wanted(inner["left"]).both(_wanted(inner["right"]))
        if operator in ("Or", "LogicalOr"):
            return _wanted(inner["left"]).either(_wanted(inner["right"]))
        if operator in OPERATORS:
            return _comparison(OPERATORS[operator], inner["left"], inner["right"])
    if kind == "Function":
        return _function(inner["function"], inner["input"])
    return EVERYTHING


def _function(function: Any, inputs: Sequence[Any]) -> Wanted:
    boolean = function.get("Boolean") if isinstance(function, dict) else None
    column = inputs[0].get("Column")
    if boolean is None or not isinstance(column, str):
        return EVERYTHING
    if boolean == "IsNull":
        return is_null(column)
    if isinstance(boolean, dict) and "IsBetween" in boolean:
        closed = boolean["IsBetween"]["closed"]
        low = ">=" if closed in ("Both", "Left") else ">"
        high = "<=" if closed in ("Both", "Right") else "<"
        return _comparison(low, inputs[0], inputs[1]).both(_comparison(high, inputs[0], inputs[2]))
    if isinstance(boolean, dict) and "IsIn" in boolean and not boolean["IsIn"]["nulls_equal"]:
        values = inputs[1]["Literal"]["Scalar"]["List"]
        table = pyarrow.ipc.open_stream(io.BytesIO(bytes(values))).read_all()
        return one_of(column, table.column(0).to_pylist())
    return EVERYTHING


def _comparison(operator: str, left: Any, right: Any) -> Wanted:
    if "Literal" in left:
        left, right, operator = right, left, MIRRORED[operator]
    column, value = left.get("Column"), _literal(right)
    if not isinstance(column, str) or value is _NOTHING:
        return EVERYTHING
    if isinstance(value, float):
        return EVERYTHING
    return comparison(column, operator, value)


def _literal(node: Mapping[str, Any]) -> object:
    """Return the value of a literal in a predicate's JSON form, or `_NOTHING` if its type is unknown."""
    literal = node.get("Literal")
    if not isinstance(literal, dict):
        return _NOTHING
    ((kind, inner),) = literal.items()
    if kind not in ("Dyn", "Scalar") or not isinstance(inner, dict):
        return _NOTHING
    ((name, value),) = inner.items()
    if name.startswith(("Int", "UInt")) and isinstance(value, int):
        return value
    if name == "Binary":
        return bytes(value)
    if name == "String" and isinstance(value, str):
        return value
    if name == "Datetime" and isinstance(value[2], dict):  # with a zone: it counts in UTC
        return _moment(value[0], UNITS[value[1]])
    return _NOTHING


def _moment(count: int, unit: int) -> object:
    if unit > 1 and count % unit:
        return _NOTHING
    return _EPOCH + timedelta(microseconds=count // unit if unit > 0 else count * -unit)
