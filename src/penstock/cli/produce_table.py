"""``penstock produce -f parquet`` and ``-f csv``: sends records from tabular files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.cli import waiting
from penstock.cli.doing import is_quiet
from penstock.cli.outcome import counted, note
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa


def produce_tables(
    files: Sequence[str],
    kind: str,
    topic: str,
    partition: int | None,
    bootstrap: str,
    config: Mapping[str, str],
    as_rows: bool,
    key_column: str | None,
) -> None:
    """Send the records in files of `kind` to `topic`, in one transaction if ``transactional.id`` is set.

    A column ``partition`` is used if `partition` is None; with -1 the partition depends on the key.

    Raises:
        ConfigError: a file is not of this kind, or has a column that would be lost.
        MissingDependencyError: pyarrow is not installed.
    """
    from penstock.common.extras import need_arrow

    need_arrow(f"produce -f {kind}")
    if kind == "parquet" and not files:
        raise ConfigError("-f parquet takes FILEs, not a pipe: the end of Parquet is read first")
    waiting.idle(f"writing {topic}")
    from penstock.tables import write_topic

    done = 0

    def read() -> Iterator[pa.Table]:
        nonlocal done
        from penstock.cli.table_files import records_of, rows_as_json, tables

        for path in files or ("-",):
            for table in tables(path, kind):
                found = rows_as_json(table, key_column, path) if as_rows else records_of(table, path)
                yield _placed(found, partition)
                done += found.num_rows

    waiting.idle(lambda: f"writing {topic}: {done:,} messages so far")
    summary = write_topic(read(), topic, bootstrap, config=config)
    waiting.step_aside()
    if not is_quiet():
        note(f"% {counted(summary.rows, 'message')} to {topic}")


def _placed(table: pa.Table, partition: int | None) -> pa.Table:
    """Return the table with all rows in `partition`; -1 removes that column, None changes nothing."""
    if partition is None:
        return table
    if "partition" in table.schema.names:
        table = table.drop_columns(["partition"])
    if partition < 0:
        return table
    import pyarrow as pa

    return table.append_column("partition", pa.array([partition] * table.num_rows, pa.int32()))
