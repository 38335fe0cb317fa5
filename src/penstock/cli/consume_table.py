"""``penstock consume --output``: writes the records of a topic to a Parquet or CSV file."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.cli import waiting
from penstock.cli.outcome import note
from penstock.cli.partitions import partitions_of
from penstock.cli.positions import ReadSpan, resolve
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.model import TopicPartition
    from penstock.tables.scans import ArrowScan

SHOWN_MAX = 5
"""The most undecodable records that are reported one by one; a last line has the number of all."""


def consume_table(
    bootstrap: str,
    topic: str,
    chosen: Collection[int],
    span: ReadSpan,
    config: Mapping[str, str],
    kind: str,
    output: str,
    isolation: str,
    *,
    count: int | None,
    exit_at_end: bool,
    in_base64: bool,
    quiet: bool,
    formats: Mapping[str, str],
    registry: str,
) -> None:
    """Write the records of a span of `topic` to a file of `kind`; ``-`` is stdout.

    `formats` are those of keys and values that are decoded with schemas of a registry. In CSV, the fields of
    decoded records are columns. Records that cannot be decoded are left out and reported on stderr.

    Raises:
        ConfigError: the span has no end, or Parquet would be written to a terminal.
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
    from penstock.cli.table_files import output_file, write_csv, write_flat_csv, write_parquet
    from penstock.client import Consumer

    partitions = partitions_of(bootstrap, topic, chosen, config)
    with Consumer(bootstrap_servers=bootstrap, config={**config, "isolation.level": isolation}) as consumer:
        starts = resolve(span, partitions, consumer)
        ends = dict(consumer.end_offsets(partitions))
        if span.stop_ms is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, span.stop_ms))
            ends |= {tp: offset for tp, offset in found.items() if offset is not None}
    decoding: dict[str, Any] = {}
    if formats:
        from penstock.registry.dead_letters import DeadLetters

        dead = decoding["dead_letters"] = DeadLetters()
        decoding |= {"value": formats.get("value"), "key_format": formats.get("key"), "registry": registry}
    scanned = _scan(bootstrap, topic, starts, ends, config, isolation, decoding)
    batches = _batches(topic, scanned, starts, ends, count)
    with output_file(output) as file:
        if kind == "parquet":
            rows = write_parquet(batches, scanned.schema, file)
        elif formats:
            rows = write_flat_csv(batches, scanned.schema, file)
        else:
            rows = write_csv(batches, file, in_base64=in_base64)
    if formats and len(dead):
        waiting.step_aside()
        for each in dead.table.slice(0, SHOWN_MAX).to_pylist():
            place = f"{each['topic']} [{each['partition']}] at offset {each['offset']}"
            note(f"% {place}: the {each['field']} does not decode: {each['reason']}")
        note(f"% {len(dead):,} messages are left out, since they do not decode")
    if not quiet:
        waiting.step_aside()
        note(f"% {rows:,} messages of {topic} in {output if output != '-' else 'stdout'}")


def _scan(
    bootstrap: str,
    topic: str,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    config: Mapping[str, str],
    isolation: str,
    decoding: Mapping[str, Any],
) -> ArrowScan:
    from penstock.tables import scan_topic

    return scan_topic(
        topic,
        bootstrap,
        start={tp.partition: offset for tp, offset in starts.items()},
        end={tp.partition: offset for tp, offset in ends.items()},
        partitions=[tp.partition for tp in starts],
        isolation=isolation,
        config=config,
        **decoding,
    )


def _batches(
    topic: str,
    found: ArrowScan,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    count: int | None,
) -> Iterator[pa.RecordBatch]:
    left = count
    done = 0
    total = sum(max(0, ends[tp] - starts[tp]) for tp in starts)
    waiting.idle(lambda: f"reading {topic}: {done:,} of {total:,} offsets")
    for batch in found:
        done += batch.num_rows
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        yield batch
        if left == 0:
            return
