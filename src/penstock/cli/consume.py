"""``penstock consume``: print the records of a topic, with kcat's flags."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, TYPE_CHECKING

import click

from penstock.cli import completion, waiting
from penstock.cli.consume_table import consume_table
from penstock.cli.envelopes import json_printer
from penstock.cli.formats import Printer, format_printer
from penstock.cli.options import (
    bootstrap_option,
    client_settings,
    delimiter,
    property_option,
    registry_option,
)
from penstock.cli.outcome import is_terminal, note
from penstock.cli.partitions import partitions_of
from penstock.cli.positions import ReadSpan, parse_span, resolve
from penstock.cli.schema_files import SCHEMA_FORMATS
from penstock.cli.times import TIME_HELP
from penstock.clock import SystemClock
from penstock.errors import ConfigError, NetworkError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.records.native import has_kernels

if TYPE_CHECKING:
    from penstock.client import Consumer
    from penstock.client.config import ConsumerConfig

LINES_BYTES = 1 << 20
"""The approximate size in bytes of the records that are converted to JSON lines in one step."""

POLL_MS = 200

MUCH_RECORDS = 1_000
"""The number of records in one poll from which on later records are printed column by column. This is faster,
but loads numpy.
"""


@click.command("consume", short_help="Print the messages of a topic.")
@bootstrap_option()
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    shell_complete=completion.topics,
    help="Topic to read; its bare name does as well.",
)
@click.option(
    "-G",
    "--group",
    metavar="GROUP",
    shell_complete=completion.groups,
    help="Share the topic with the members of GROUP, and commit offsets.",
)
@click.option(
    "--share",
    "share_group",
    metavar="GROUP",
    shell_complete=completion.share_groups,
    help="Take records as a member of the share group GROUP, and accept them.",
)
@click.option(
    "-p", "--partition", "chosen", type=click.IntRange(0), multiple=True, help="Only this partition."
)
@click.option(
    "-o",
    "--offset",
    "offsets",
    multiple=True,
    metavar="WHERE",
    help="beginning (default), end, an offset, -N (N before the end), s@TIME (from it on), e@TIME "
    "(up to it). "
    f"A TIME is {TIME_HELP}.",
)
@click.option("-c", "--count", type=click.IntRange(1), help="Exit after so many messages.")
@click.option(
    "-e", "--exit", "exit_at_end", is_flag=True, help="Exit when everything there is has been printed."
)
@click.option(
    "-f",
    "--format",
    "layout",
    metavar="FORMAT",
    help="How to print a message: tokens, see above; or json, csv, parquet.",
)
@click.option(
    "--output",
    metavar="FILE",
    help="Write into FILE, which is there once it is whole. Its ending says the format.",
)
@click.option("--base64", "in_base64", is_flag=True, help="In CSV: keys, values and headers in base64.")
@click.option(
    "--value", "value_format", type=click.Choice(SCHEMA_FORMATS), help="Decode values by their schemas."
)
@click.option("--key", "key_format", type=click.Choice(SCHEMA_FORMATS), help="Decode keys by their schemas.")
@registry_option("--registry")
@click.option("-J", "--json", "as_json", is_flag=True, help="Print each message as one line of JSON.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Print the key and this text before the value.")
@click.option(
    "-D", "--delimiter", "between", metavar="TEXT", default="\\n", show_default=True, help="Ends a message."
)
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    help="read_committed leaves out what is aborted or not committed yet. Default: read_uncommitted.",
)
@click.option("-Z", "--null", "show_null", is_flag=True, help="Print null keys and values as NULL.")
@click.option("--raw", is_flag=True, help="On a terminal, too, print control characters as they are.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")
@click.option("-u", "--unbuffered", is_flag=True, help="Write each message out at once.")
@property_option()
@click.argument("names", metavar="[TOPIC]...", nargs=-1, shell_complete=completion.topics)
def command(
    bootstrap: str,
    topics: tuple[str, ...],
    group: str | None,
    share_group: str | None,
    chosen: tuple[int, ...],
    offsets: tuple[str, ...],
    count: int | None,
    exit_at_end: bool,
    layout: str | None,
    output: str | None,
    in_base64: bool,
    value_format: str | None,
    key_format: str | None,
    registry: str,
    as_json: bool,
    key_delimiter: str | None,
    between: str,
    isolation: str | None,
    show_null: bool,
    raw: bool,
    quiet: bool,
    unbuffered: bool,
    properties: tuple[str, ...],
    names: tuple[str, ...],
) -> None:
    """Print the messages of a topic, from the beginning unless -o says otherwise.

    \b
    Examples:
      penstock consume delays                    existing and new messages
      penstock consume -t delays -e              all existing messages, then exit
      penstock consume -t delays -o -5 -e        the last five of each partition
      penstock consume -t delays -o '1h ago' -e  the last hour
      penstock consume -t delays -o s@2026-01-31 -o e@2026-02-01
      penstock consume -t delays -J -c 1         one message as JSON
      penstock consume -t delays -G billing      as a member of a group
      penstock consume -t images --share resize  as a member of a share group
      penstock consume -t delays -f '%t/%p/%o %k: %s\\n'
      penstock consume -t delays -e --output delays.parquet
      penstock consume orders -e --value avro --registry http://localhost:8081

    \b
    Tokens of -f:
      %s value   %S its length   %R its length in 4 bytes   %k key   %K its length
      %t topic   %p partition    %o offset   %T timestamp   %h headers
      %% a percent sign
    """
    topics = tuple(dict.fromkeys((*topics, *names)))
    if not topics:
        raise click.UsageError("Missing argument: which topic?")
    if group is not None and share_group is not None:
        raise ConfigError("-G and --share exclude each other: a group is a consumer group or a share group")
    formats = {
        name: each for name, each in (("key", key_format), ("value", value_format)) if each is not None
    }
    kind = _file_kind(layout, output)
    if kind in TABLES:
        if group is not None or as_json or key_delimiter is not None or len(topics) > 1:
            raise ConfigError(f"{kind} takes one topic as a whole: leave out -G, -J and -K")
        if share_group is not None:
            raise ConfigError(f"{kind} takes one topic as a whole: leave out --share")
        config = client_settings(properties)
        consume_table(
            bootstrap,
            topics[0],
            chosen,
            parse_span(offsets),
            config,
            kind,
            output or "-",
            isolation or config.get("isolation.level", "read_uncommitted"),
            count=count,
            exit_at_end=exit_at_end,
            in_base64=in_base64,
            quiet=quiet,
            formats=formats,
            registry=registry,
        )
        return
    if output is not None:
        raise ConfigError("--output is for Parquet and CSV; the shell writes the rest into a file: > FILE")
    if in_base64:
        raise ConfigError("--base64 is for CSV; consume -J has base64 beside what is not UTF-8")
    if kind == "json":
        as_json, layout = True, None
    if as_json and (layout is not None or key_delimiter is not None):
        raise ConfigError("-J is a format of its own: leave out -f and -K")
    printer = _printer(
        as_json,
        layout,
        key_delimiter,
        delimiter(between, "-D"),
        b"NULL" if show_null else b"",
        is_terminal() and not raw,
    )
    if formats:
        from penstock.cli.decoded_values import DecodedFields

        decoded = DecodedFields(formats, registry)
        printer = decoded.json_printer(printer) if as_json else decoded.printer(printer)
    span = parse_span(offsets)
    config = client_settings(properties)
    if share_group is not None:
        from penstock.cli import consume_share
        from penstock.cli.consume_group import leaving_on_sigterm
        from penstock.client import ShareConsumer

        member = consume_share.share_config(config, share_group, chosen, offsets, isolation, count)
        with (
            errors_only(quiet),
            leaving_on_sigterm() as leaving,
            ShareConsumer(bootstrap_servers=bootstrap, config=member) as sharing,
        ):
            consume_share.print_to(
                sys.stdout.buffer,
                sharing,
                topics,
                printer,
                leaving,
                count=count,
                exit_at_end=exit_at_end,
                unbuffered=unbuffered,
            )
        return
    if isolation is not None:
        config["isolation.level"] = isolation
    from penstock.client import Consumer
    from penstock.client.config import ConsumerConfig

    is_plain = as_json and not formats and not unbuffered and (raw or not is_terminal())
    if group is not None:
        from penstock.cli import consume_group

        options = consume_group.group_config(config, group, chosen, span)
        with (
            errors_only(quiet),
            consume_group.leaving_on_sigterm() as leaving,
            Consumer(bootstrap_servers=bootstrap, config=options) as consumer,
        ):
            consume_group.print_to(
                sys.stdout.buffer,
                consumer,
                topics,
                printer,
                leaving,
                count=count,
                exit_at_end=exit_at_end,
                unbuffered=unbuffered,
                quiet=quiet,
            )
        return
    if len(topics) > 1:
        raise ConfigError("several topics need a group: say which with -G or --share")
    (topic,) = topics
    # What is removed meanwhile, or created anew, is gone on with at its beginning.
    config = {"auto.offset.reset": "earliest", **config}
    partitions = partitions_of(bootstrap, topic, chosen, config)
    with (
        errors_only(quiet),
        Consumer(bootstrap_servers=bootstrap, config=config) as consumer,
    ):
        reading = ConsumeRun(consumer, partitions, span, exit_at_end=exit_at_end, quiet=quiet)
        reading.print_to(
            sys.stdout.buffer,
            printer,
            count,
            unbuffered=unbuffered,
            json_settings=ConsumerConfig.parse(config, {"bootstrap_servers": bootstrap})
            if is_plain
            else None,
        )


TABLES = ("parquet", "csv")


def _file_kind(layout: str | None, output: str | None) -> str | None:
    """Return the output format: from ``-f``, or the file extension (parquet, csv, json), else None.

    Raises:
        ConfigError: there is a file, but neither ``-f`` nor its extension names a format.
    """
    if layout in (*TABLES, "json"):
        return layout
    if output is None:
        return None
    kind = output.rpartition(".")[2].lower()
    if kind not in TABLES:
        raise ConfigError(f"--output {output}: name it .parquet or .csv, or say which with -f")
    return kind


@contextmanager
def errors_only(is_wanted: bool) -> Iterator[None]:
    """Suppress warnings and hints on stderr while the block runs, if `is_wanted`."""
    logger = logging.getLogger("penstock")
    level = logger.level
    if is_wanted:
        waiting.be_quiet()
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _printer(
    as_json: bool,
    layout: str | None,
    key_delimiter: str | None,
    between: bytes,
    null: bytes,
    for_terminal: bool,
) -> Printer:
    if as_json:
        return partial(json_printer, for_terminal=for_terminal)
    if layout is not None:
        return format_printer(layout, null, for_terminal=for_terminal)
    value = format_printer("%s", null, for_terminal=for_terminal)
    if key_delimiter is None:
        return lambda record: value(record) + between
    key, separator = format_printer("%k", null, for_terminal=for_terminal), delimiter(key_delimiter, "-K")
    return lambda record: key(record) + separator + value(record) + between


class ConsumeRun:
    """Reads partitions for ``penstock consume``, until the count, the end or the stop time is reached."""

    def __init__(
        self,
        consumer: Consumer,
        partitions: list[TopicPartition],
        span: ReadSpan,
        *,
        exit_at_end: bool,
        quiet: bool,
    ) -> None:
        self._consumer = consumer
        self._stop_ms = span.stop_ms
        # Up to a time that has passed already, there is nothing to wait for either.
        self._exit_at_end = exit_at_end or (
            span.stop_ms is not None and span.stop_ms <= SystemClock().now_ms()
        )
        self._quiet = quiet
        self._topic = partitions[0].topic
        # The end is the one seen at the start: a topic that is written all the time still comes to it.
        self._ends = dict(consumer.end_offsets(partitions))
        self._unfinished = set(partitions)
        starts = resolve(span, partitions, consumer)
        consumer.assign(partitions)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)

    def print_to(
        self,
        output: IO[bytes],
        printer: Printer,
        count: int | None,
        *,
        unbuffered: bool,
        json_settings: ConsumerConfig | None = None,
    ) -> None:
        """Print records until the count, the end or the stop time is reached.

        Records of a slow topic are printed as they arrive. If the output is JSON, and `json_settings` has the
        consumer's settings, batches of records are converted column by column.
        """
        left = -1 if count is None else count
        if not self._exit_at_end:
            waiting.idle(f"waiting for messages of {self._topic}; Ctrl-C ends")
        self._note_ends()
        while self._unfinished and left != 0:
            records = self._consumer.poll(
                timeout_ms=POLL_MS, max_records=10_000 if left < 0 else min(left, 10_000)
            )
            if records:
                waiting.step_aside()
            is_much = len(records) >= MUCH_RECORDS and left != len(records)
            for record in records:
                tp = TopicPartition(record.topic, record.partition)
                if tp not in self._unfinished:
                    continue
                if self._exit_at_end and record.offset >= self._ends[tp]:
                    continue
                if self._stop_ms is not None and record.timestamp >= self._stop_ms:
                    self._finish(tp)
                    continue
                output.write(printer(record))
                if unbuffered:
                    output.flush()
                left -= 1
            output.flush()
            self._note_ends(is_idle=not records)
            if is_much and json_settings is not None and has_kernels():
                self._print_columns(output, left, json_settings)
                return

    def _print_columns(self, output: IO[bytes], left: int, config: ConsumerConfig) -> None:
        """Print further records as JSON lines, converted by columns: at most `left`, or all if negative."""
        from penstock.cli.json_lines import json_lines, rows_before
        from penstock.records.decode import iter_columns

        while self._unfinished and left != 0:
            part = self._consumer.poll_part(POLL_MS)
            if part is not None and part.tp in self._unfinished:
                waiting.step_aside()
                for columns in iter_columns(
                    part.records,
                    start_offset=part.start,
                    end_offset=self._ends[part.tp] if self._exit_at_end else None,
                    aborted=part.aborted,
                    verify_crcs=config.check_crcs,
                    limit_bytes=config.unpack_limits.max_bytes,
                    limit_records=config.unpack_limits.max_records,
                    batch_bytes=LINES_BYTES,
                ):
                    count, is_over = rows_before(columns, self._stop_ms)
                    count = count if left < 0 else min(count, left)
                    output.write(json_lines(columns, part.tp, count))
                    left -= count if left > 0 else 0
                    if is_over:
                        self._finish(part.tp)
                    if is_over or left == 0:
                        break
            output.flush()
            self._note_ends(is_idle=part is None)

    def _note_ends(self, *, is_idle: bool = False) -> None:
        """Mark partitions as finished that are read to the end, even if only control records were left.

        When no records arrive, the ends are requested again: a topic that was re-created may have smaller
        ones.
        """
        if not self._exit_at_end:
            return
        if is_idle:
            with suppress(NetworkError, RequestTimeoutError):
                ends = self._consumer.end_offsets(list(self._unfinished))
                self._ends |= {tp: min(end, self._ends[tp]) for tp, end in ends.items()}
        for tp in sorted(self._unfinished):
            if self._consumer.position(tp) >= self._ends[tp]:
                self._finish(tp)

    def _finish(self, tp: TopicPartition) -> None:
        self._unfinished.discard(tp)
        self._consumer.pause([tp])
        if not self._quiet:
            end = f"{tp.topic} [{tp.partition}] at offset {self._consumer.position(tp)}"
            waiting.step_aside()
            note(f"% Reached end of topic {end}")
