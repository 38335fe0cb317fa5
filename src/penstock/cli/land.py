"""``penstock land``: writes topics to Iceberg or Delta tables, or as Parquet to a store or a directory."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import waiting
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, pairs, property_option
from penstock.cli.outcome import put
from penstock.cli.times import parse_duration
from penstock.common.extras import need_arrow
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.lake.contract import LakeTable
    from penstock.lake.lander import Lander

FORMATS = ("bytes", "text", "json", "cloudevents", "avro", "protobuf")

MIB = 1 << 20


@click.command("land", short_help="Land a topic as a table: Iceberg, Delta, Parquet.")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--to", "where", required=True, metavar="TABLE", help="Where to: see the examples.")
@bootstrap_option()
@click.option(
    "--format",
    "value_format",
    type=click.Choice(FORMATS),
    default="bytes",
    show_default=True,
    help="What values are; their fields become columns.",
)
@click.option("--fields", metavar="LIST", help="Fields of JSON and their types, as 'id bigint, name string'.")
@click.option("--columns", metavar="LIST", help="All columns of the table, separated by commas.")
@click.option("--registry", metavar="URL", envvar="SCHEMA_REGISTRY_URL", help="The schema registry.")
@click.option(
    "--partition-by",
    "partitions",
    metavar="COLUMN",
    multiple=True,
    help="date, hour, a column, or for Iceberg day(...), bucket(16, key). May be repeated.",
)
@click.option(
    "--sort-by", "orders", metavar="COLUMN", multiple=True, help="Sort files of Iceberg: city, 'id desc'."
)
@click.option("--upsert", is_flag=True, help="One row for each key: the last record; a tombstone deletes.")
@click.option("--debezium", is_flag=True, help="Values are envelopes of Debezium in JSON; needs --upsert.")
@click.option("--rename", "renames", metavar="OLD=NEW", multiple=True, help="Rename a column of Iceberg.")
@click.option("--drop", "drops", metavar="COLUMN", multiple=True, help="Drop a column of Iceberg.")
@click.option("--name", help="Who writes; the table has positions under it.  [default: the topic]")
@click.option(
    "--every", default="60s", show_default=True, help="How long a record waits for its commit at most."
)
@click.option(
    "--file-size", "file_mib", default=128, show_default=True, type=click.IntRange(1, 4096), help="In MiB."
)
@click.option("--compression", default="zstd", show_default=True, help="The codec of files.")
@click.option(
    "--start",
    type=click.Choice(("earliest", "latest")),
    default="earliest",
    show_default=True,
    help="Where a table without positions begins.",
)
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_committed",
    show_default=True,
    help="Whether to land what is not committed, or aborted.",
)
@click.option("--backfill", is_flag=True, help="Land what was there before the first record, and end.")
@click.option("--from-log", metavar="DIR", help="Backfill from a directory of a broker's log.")
@click.option("--group", metavar="NAME", help="Share partitions with all that give this name; needs -f.")
@click.option("--allow-loss", is_flag=True, help="Go on where records were removed before they were read.")
@click.option("--dead-letters", metavar="TABLE", help="Where records go that do not fit.  [default: beside]")
@click.option("--refuse-misfits", is_flag=True, help="End at a record that does not fit.")
@click.option(
    "--store",
    "store",
    metavar="NAME=VALUE",
    multiple=True,
    help="An option of the store or the catalog. May be repeated.",
)
@click.option("--store-file", metavar="FILE", help="A TOML file of such options, read again when it changes.")
@click.option("--status", is_flag=True, help="Land nothing; print how far the table is.")
@click.option("--tidy", is_flag=True, help="Land nothing; compact, expire, remove orphans.")
@click.option(
    "--small-size", "small_mib", default=32, show_default=True, help="Smaller files are compacted; MiB."
)
@click.option("--keep", default="7d", show_default=True, help="Snapshots older than that expire.")
@click.option("--orphan-age", default="1d", show_default=True, help="Files without a commit stay so long.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option("--metrics-file", metavar="FILE", help="Write figures for Prometheus there, at each commit.")
@json_option()
@property_option()
def command(
    topics: tuple[str, ...],
    where: str,
    bootstrap: str,
    value_format: str,
    fields: str | None,
    columns: str | None,
    registry: str | None,
    partitions: tuple[str, ...],
    orders: tuple[str, ...],
    upsert: bool,
    debezium: bool,
    renames: tuple[str, ...],
    drops: tuple[str, ...],
    name: str | None,
    every: str,
    file_mib: int,
    compression: str,
    start: str,
    isolation: str,
    backfill: bool,
    from_log: str | None,
    group: str | None,
    allow_loss: bool,
    dead_letters: str | None,
    refuse_misfits: bool,
    store: tuple[str, ...],
    store_file: str | None,
    status: bool,
    tidy: bool,
    small_mib: int,
    keep: str,
    orphan_age: str,
    follow: bool,
    metrics_file: str | None,
    as_json: bool,
    properties: tuple[str, ...],
) -> None:
    """Write topics to tables, each record once; a restarted command continues where the tables end.

    Several topics, or a name with *, need {topic} in TABLE, and each topic gets its own table. With
    --group, processes with the same group name share the partitions; they can be started and stopped freely.

    Positions are stored in the table's own commits, so that another machine can continue. Records that do
    not fit the table go to a table of dead letters, with partition, offset, reason and bytes.

    Options of stores are those of obstore and deltalake, such as endpoint=http://localhost:9000; options of
    Iceberg are those of pyiceberg, such as uri=http://localhost:8181. Passwords belong in --store-file or
    in the environment.

    \b
    Examples:
      penstock land orders --to /data/orders
      penstock land orders --to s3://lake/orders/ --format json -f
      penstock land orders --to delta://s3://lake/orders --format cloudevents
      penstock land users --to iceberg://prod/sales.users --format avro \\
        --registry http://localhost:8081 --upsert -f --every 5m
      penstock land 'shop.*' --to s3://lake/{topic}/ --format json -f --group lake
      penstock land orders --to iceberg://prod/sales.orders --backfill
      penstock land orders --to iceberg://prod/sales.orders --status
      penstock land orders --to iceberg://prod/sales.orders --tidy --keep 7d
    """
    need_arrow("penstock land")
    from penstock.lake.arrow_types import fields_of
    from penstock.lake.backfill import BACKFILL_SUFFIX, LogBackfill, TopicBackfill, backfill_source
    from penstock.lake.contract import TableSettings
    from penstock.lake.credentials import StoreOptions
    from penstock.lake.fleet import Fleet, TopicTables
    from penstock.lake.lander import Lander, LandSettings
    from penstock.lake.metrics import write_metrics
    from penstock.lake.shapes import ShapeSettings
    from penstock.lake.targets import dead_letters_of, dead_settings, open_table, place_of, places_of

    if status and tidy:
        raise ConfigError("--status prints and --tidy changes the table: give one of them")
    if dead_letters is not None and refuse_misfits:
        raise ConfigError("--refuse-misfits leaves nothing for --dead-letters: give one of them")
    if debezium and not (upsert and value_format == "json"):
        raise ConfigError(
            "--debezium is for changes of rows in JSON: give --upsert and --format json as well"
        )
    if group is not None and not (follow or status or tidy):
        raise ConfigError("--group has workers follow their topics: give -f as well")
    if from_log is not None and not backfill:
        raise ConfigError("--from-log names where a backfill is read from: give --backfill as well")
    if backfill and (follow or upsert or group is not None or status or tidy):
        raise ConfigError(
            "--backfill appends what was there before, and ends: not with --upsert, where the last "
            "record counts, nor with -f, --group, --status or --tidy"
        )
    config = client_settings(properties)
    chosen = _chosen(topics, bootstrap, config)
    options = StoreOptions(pairs(store, "--store"), store_file)
    places = places_of(where, chosen)

    def settings_of(topic: str) -> TableSettings:
        return TableSettings(
            name or topic,
            partitions,
            compression,
            file_mib * MIB,
            ("key",) if upsert else (),
            pairs(renames, "--rename"),
            drops,
            group is not None,
            orders,
        )

    def table_of(topic: str) -> LakeTable:
        return open_table(places[topic], topic, settings_of(topic), options)

    if backfill and len(chosen) > 1:
        raise ConfigError("--backfill is for one topic: give each a command of its own")

    settings = LandSettings(
        chosen[0],
        bootstrap,
        ShapeSettings(
            value_format,
            None if fields is None else fields_of(fields),
            None if columns is None else tuple(each.strip() for each in columns.split(",")),
            registry if value_format in ("json", "avro", "protobuf") else None,
        ),
        isolation,
        start,
        allow_loss,
        upsert,
        debezium,
        parse_duration(every, "--every") / 1000,
        config=config,
    )
    if status:
        for topic in chosen:
            with Lander(replace(settings, topic=topic), table_of(topic)) as lander:
                _status(topic, lander, as_json)
        return

    source: TopicBackfill | LogBackfill | None = None
    if backfill:
        source = backfill_source(settings, table_of(chosen[0]), from_log)
        name = f"{name or chosen[0]}{BACKFILL_SUFFIX}"

    def dead_of(topic: str) -> LakeTable:
        beside = dead_letters_of(places[topic]) if dead_letters is None else place_of(dead_letters, topic)
        return open_table(beside, topic, dead_settings(settings_of(topic)), options)

    def tables_of(topic: str) -> TopicTables:
        return TopicTables(table_of(topic), None if refuse_misfits else partial(dead_of, topic))

    if dead_letters is not None:
        places_of(dead_letters, chosen)
    if tidy:
        for topic in chosen:
            _tidy(topic, table_of(topic), dead_of(topic), small_mib, keep, orphan_age, as_json)
        return
    landing: Lander | Fleet
    if len(chosen) == 1 and group is None:
        landing = Lander(settings, *tables_of(chosen[0]), source)
    else:
        landing = Fleet(settings, chosen, tables_of, group=group)
    shown = chosen[0] if len(chosen) == 1 else f"{len(chosen):,} topics"
    with landing, _ending() as ending:
        waiting.idle(
            lambda: f"landing {shown}: {landing.records:,} records, {landing.written.rows:,} committed"
        )

        def landers() -> list[Lander]:
            return [landing] if isinstance(landing, Lander) else list(landing.landers.values())

        def committed(lander: Lander) -> None:
            if metrics_file is not None:
                write_metrics(Path(metrics_file), landers())
            if as_json:
                waiting.step_aside()
                put_rows("land", [_row(lander)], as_json)
                sys.stdout.flush()

        done = landing.run(follow=follow, stopped=ending.is_set, committed=committed)
        waiting.step_aside()
        if not as_json:
            put(f"landed {done.rows:,} rows of {shown} in {done.files:,} files ({done.size_bytes:,} bytes)")
            if dead := sum(lander.dead for lander in landers()):
                put(f"{dead:,} records do not fit; they are in the table of dead letters")
        elif not done.commits:
            put_rows("land", [_row(lander) for lander in landers()], as_json)


def _chosen(topics: Sequence[str], bootstrap: str, config: Mapping[str, object]) -> list[str]:
    """Return the existing topics that match the given names, in which ``*`` matches any characters.

    Raises:
        ConfigError: no topic matches a name.
        NetworkError, RequestTimeoutError: no broker answers.
    """
    if not any("*" in each for each in topics):
        return list(dict.fromkeys(topics))
    from penstock.client.blocking.admin import Admin

    with Admin(bootstrap, dict(config)) as admin:
        there = admin.list_topics()
    found: dict[str, None] = {}
    for each in topics:
        wanted = re.compile(re.escape(each).replace(r"\*", ".*"), re.DOTALL)
        names = [name for name in there if wanted.fullmatch(name)] if "*" in each else [each]
        if not names:
            raise ConfigError(f"no topic has a name like {each!r}: see penstock topic list")
        found |= dict.fromkeys(names)
    return list(found)


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM sets, so that records already read are committed before the end.

    A second SIGTERM, or Ctrl-C, ends the command at once; the next start then reads these records again.
    """
    event = threading.Event()
    before = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: object) -> None:
        event.set()
        signal.signal(signal.SIGTERM, before)

    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield event
    finally:
        signal.signal(signal.SIGTERM, before)


def _row(lander: Lander) -> dict[str, object]:
    done = lander.written
    return {
        "topic": lander.positions.topic,
        "table": lander.table.title,
        "rows": done.rows,
        "dead": lander.dead,
        "files": done.files,
        "bytes": done.size_bytes,
        "commits": done.commits,
        "lag": lander.lag,
    }


def _status(topic: str, lander: Lander, as_json: bool) -> None:
    from penstock.lake.contract import TableState

    state = lander.table.state()
    offsets = lander.positions.offsets
    rows: list[dict[str, Any]] = [
        {
            "topic": topic,
            "partition": partition,
            "table": lander.table.title,
            "position": offsets.get(partition, 0),
            "end": end,
            "lag": max(0, end - offsets.get(partition, 0)),
            "table_rows": state.rows,
            "table_files": state.files,
            "table_bytes": state.size_bytes,
            "snapshots": state.snapshots,
        }
        for partition, end in sorted(lander.ends.items())
    ]
    waiting.step_aside()
    put_rows("land status", rows, as_json, ("topic", "partition", "position", "end", "lag"))
    if as_json:
        return
    if state == TableState(None, 0, 0, 0, 0):
        put(f"{lander.table.title}: there is no table yet")
        return
    put(
        f"{lander.table.title}: {state.rows:,} rows in {state.files:,} files "
        f"({state.size_bytes:,} bytes), {state.snapshots:,} snapshots"
    )


def _tidy(
    topic: str,
    table: LakeTable,
    dead_letters: LakeTable,
    small_mib: int,
    keep: str,
    orphan_age: str,
    as_json: bool,
) -> None:
    """Merge small files and expire snapshots of a table and its dead-letter table; print a summary."""
    from penstock.lake.contract import Tidied

    for each in (table, dead_letters):
        waiting.idle(f"tidying {each.title}")
        done = each.tidy(
            small_bytes=small_mib * MIB,
            keep_snapshots_s=parse_duration(keep, "--keep") / 1000,
            orphan_s=parse_duration(orphan_age, "--orphan-age") / 1000,
        )
        waiting.step_aside()
        if done == Tidied() and each is dead_letters:
            continue
        if as_json:
            row = {
                "topic": topic,
                "table": each.title,
                "compacted_files": done.compacted_files,
                "compacted_into": done.compacted_into,
                "expired_snapshots": done.expired_snapshots,
                "orphans": done.orphans,
            }
            put_rows("land tidy", [row], as_json)
        elif done == Tidied() and each.schema() is None:
            put(f"{each.title}: there is no table yet")
        else:
            put(
                f"{each.title}: put {done.compacted_files:,} files into {done.compacted_into:,}, expired "
                f"{done.expired_snapshots:,} snapshots, removed {done.orphans:,} files that no commit names"
            )
