"""``penstock consume --output``: what a topic holds, as a Parquet or CSV file."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.cli import waiting
from penstock.cli.outcome import note
from penstock.cli.partitions import partitions_of
from penstock.cli.positions import Span, resolve
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.model import TopicPartition


def consume_table(
    bootstrap: str,
    topic: str,
    chosen: Collection[int],
    span: Span,
    config: Mapping[str, str],
    kind: str,
    output: str,
    isolation: str,
    *,
    count: int | None,
    exit_at_end: bool,
    in_base64: bool,
    quiet: bool,
) -> None:
    """Write the records of a span of `topic` into a file of `kind`; ``-`` is stdout.

    Raises:
        ConfigError: the span has no end, or a terminal would get what it cannot show.
        MissingDependencyError: pyarrow is not installed.
    """
    if not exit_at_end and span.stop_ms is None:
        raise ConfigError(f"{kind} needs an end: add -e for what there is now, or -o e@TIME")
    if kind == "parquet" and output == "-" and sys.stdout.isatty():
        raise ConfigError("Parquet is not for terminals: give --output FILE, or a pipe")
    from penstock.common.extras import need_arrow

    need_arrow(f"consume -f {kind}")
    if quiet:
        waiting.be_quiet()
    waiting.idle(f"reading {topic}")
    from penstock.cli.table_files import output_file, write_csv, write_parquet
    from penstock.client import Consumer
    from penstock.records.arrow import SCHEMA

    partitions = partitions_of(bootstrap, topic, chosen, config)
    with Consumer(bootstrap_servers=bootstrap, config={**config, "isolation.level": isolation}) as consumer:
        starts = resolve(span, partitions, consumer)
        ends = dict(consumer.end_offsets(partitions))
        if span.stop_ms is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, span.stop_ms))
            ends |= {tp: offset for tp, offset in found.items() if offset is not None}
    batches = _batches(bootstrap, topic, starts, ends, config, isolation, count)
    with output_file(output) as file:
        if kind == "parquet":
            rows = write_parquet(batches, SCHEMA, file)
        else:
            rows = write_csv(batches, file, in_base64=in_base64)
    if not quiet:
        waiting.step_aside()
        note(f"% {rows:,} messages of {topic} in {output if output != '-' else 'stdout'}")


def _batches(
    bootstrap: str,
    topic: str,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    config: Mapping[str, str],
    isolation: str,
    count: int | None,
) -> Iterator[pa.RecordBatch]:
    from penstock.tables import scan_topic

    left = count
    done = 0
    total = sum(max(0, ends[tp] - starts[tp]) for tp in starts)
    waiting.idle(lambda: f"reading {topic}: {done:,} of {total:,} offsets")
    found = scan_topic(
        topic,
        bootstrap,
        start={tp.partition: offset for tp, offset in starts.items()},
        end={tp.partition: offset for tp, offset in ends.items()},
        partitions=[tp.partition for tp in starts],
        isolation=isolation,
        config=config,
    )
    for batch in found:
        done += batch.num_rows
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        yield batch
        if left == 0:
            return
