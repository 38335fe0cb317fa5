"""A topic that gets the records of every micro-batch of a query exactly once.

Spark runs a micro-batch again when it was killed before the batch was marked as done. Before anything
of a batch is written, the end of every partition of the topic is put on disk. If the batch comes
again, the records appended behind these positions are read back, and only the records that are not
among it are written. Two records are the same when their identity is (`penstock.spark.sinks.identity`).

Assumed: one driver writes the batches of a query, and nothing that a killed one had sent is still on
its way when the batch is run again, seconds later.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, EncodeError, StorageError
from penstock.model import LATEST, TopicPartition
from penstock.spark.sinks.atomic_files import make_directory, remove_unfinished, write_whole
from penstock.spark.sinks.identity import Identity, by_event
from penstock.spark.source.brokers import Brokers
from penstock.spark.source.options import Selection

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class TopicSink:
    """Writes batches to `topic`; `state` is a directory that lives as long as the query's checkpoint.

        sink = TopicSink("delays", bootstrap_servers="localhost:9092", state="state/delays")
        query = frame.writeStream.foreachBatch(sink.write).option("checkpointLocation", ...).start()

    Rows have `value` and, if wanted, `key`, `headers`, `partition` and `timestamp`. The batches reach
    the topic through the driver. `config` holds settings of the producer by Kafka's names.
    """

    def __init__(
        self,
        topic: str,
        *,
        bootstrap_servers: str,
        state: str | PathLike[str],
        identity: Identity = by_event,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.topic = topic
        self._bootstrap_servers = bootstrap_servers
        self._state = Path(state)
        self._identity = identity
        self._config = dict(config or {})
        make_directory(self._state)
        remove_unfinished(self._state)

    def commit(self, batch_id: int, table: pa.Table) -> int:
        """Bring the records of batch `batch_id` into the topic; how many of them were missing.

        Raises:
            EncodeError: a record has no identity, or a column is of a type no record has.
            StorageError: the positions cannot be written or read.
            PenstockError: the topic does not exist, the brokers refuse the records, or the like.
        """
        records = as_records(table)
        # Asked for every time: a batch without identities must fail before it is written, not after.
        identities = self._identity(records)
        if None in identities:
            name = getattr(self._identity, "__name__", "the identity given")
            raise EncodeError(
                f"row {identities.index(None)} cannot be distinguished from others: {name} finds nothing"
            )
        noted = self._positions_of(batch_id)
        if noted is None:
            self._note(batch_id, self._ends())
        else:
            records = without(records, identities, self._written_since(noted))
        if records.num_rows:
            self._append(records)
        self._forget_before(batch_id)
        return int(records.num_rows)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Commit a whole micro-batch: pass this method to `foreachBatch`."""
        self.commit(batch_id, frame.toArrow())

    def _file_of(self, batch_id: int) -> Path:
        if batch_id < 0:
            raise ConfigError(f"a batch id counts from 0, not {batch_id}")
        return self._state / f"batch-{batch_id:012d}.json"

    def _note(self, batch_id: int, positions: Mapping[int, int]) -> None:
        document = {"topic": self.topic, "positions": {str(p): positions[p] for p in sorted(positions)}}
        write_whole(self._file_of(batch_id), lambda hidden: _write_text(hidden, json.dumps(document)))

    def _positions_of(self, batch_id: int) -> dict[int, int] | None:
        """Where the partitions ended before this batch was first written; None if it never was."""
        file = self._file_of(batch_id)
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            topic = document["topic"]
            positions = {int(partition): int(offset) for partition, offset in document["positions"].items()}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"{file} does not hold the positions of a batch: {error}") from None
        if topic != self.topic:
            raise ConfigError(f"{self._state} belongs to the sink of topic {topic!r}, not {self.topic!r}")
        return positions

    def _forget_before(self, batch_id: int) -> None:
        """Batches before this one are marked as done, or Spark would not have come this far."""
        this = self._file_of(batch_id)
        for file in self._state.glob("batch-*.json"):
            if file.name < this.name:
                file.unlink(missing_ok=True)

    def _ends(self) -> dict[int, int]:
        """The offset after the last record of every partition.

        Raises:
            ConfigError: the topic does not exist.
        """
        with closing(Brokers(self._bootstrap_servers, {})) as brokers:
            count = brokers.partition_counts(Selection(topics=(self.topic,))).get(self.topic)
            if count is None:
                raise ConfigError(f"unknown topic {self.topic!r}: create it before writing to it")
            tps = [TopicPartition(self.topic, partition) for partition in range(count)]
            ends = brokers.lookup(dict.fromkeys(tps, LATEST))
        return {tp.partition: offset or 0 for tp, offset in ends.items()}

    def _written_since(self, positions: Mapping[int, int]) -> Sequence[Hashable]:
        """The identities of all records at or after `positions`."""
        from penstock.tables import read_topic

        columns = ["key", "value", "headers"]
        # A partition without a position did not exist then: all of it is new.
        found = read_topic(self.topic, self._bootstrap_servers, start=dict(positions), columns=columns)
        return self._identity(found)

    def _append(self, records: pa.Table) -> None:
        from penstock.tables import write_topic

        write_topic(records, self.topic, self._bootstrap_servers, config=self._config)


def as_records(table: pa.Table) -> pa.Table:
    """The columns of `table` that a record has, bytes as bytes; `key` and `headers` null where missing.

    Raises:
        EncodeError: there is no `value`, or a column is of a type that no record has.
    """
    import pyarrow as pa

    kinds = {
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        "partition": pa.int32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    if "value" not in table.column_names:
        raise EncodeError(f"no column 'value' among {', '.join(table.column_names) or 'no columns'}")
    columns = {}
    for name, kind in kinds.items():
        if name in table.column_names:
            column = table[name]
            if not _converts(column.type, kind):
                raise EncodeError(f"column {name!r} is {column.type}, which is not {kind}")
            columns[name] = column.cast(kind)
        elif name in ("key", "headers"):
            columns[name] = pa.chunked_array([pa.nulls(table.num_rows, kind)])
    return pa.table(columns)


def _converts(present: pa.DataType, wanted: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_null(present):
        return True
    for kinds in (
        (pa.types.is_binary, pa.types.is_string, pa.types.is_large_binary, pa.types.is_large_string),
        (pa.types.is_list,),
        (pa.types.is_integer,),
        (pa.types.is_timestamp,),
    ):
        if any(kind(wanted) for kind in kinds):
            return any(kind(present) for kind in kinds)
    return False


def _write_text(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def without(records: pa.Table, identities: Sequence[Hashable], written: Sequence[Hashable]) -> pa.Table:
    """The records whose identity is not among `written`; where several share one, as many as are missing."""
    import pyarrow as pa

    there = Counter(written)
    missing = []
    for identity in identities:
        missing.append(there[identity] <= 0)
        there[identity] -= 1
    return records.filter(pa.array(missing, pa.bool_()))
