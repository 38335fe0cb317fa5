"""``penstock transaction``: lists, describes and aborts transactions, and finds hanging ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.group_reset import parse_topics
from penstock.cli.listing import json_option, put_json, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import put, readable
from penstock.cli.partitions import numbered
from penstock.cli.times import DURATION_HELP, parse_duration
from penstock.errors import ConfigError
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.client import Admin, HangingTransaction, PartitionProducer, TransactionDescription

MINUTE_MS = 60_000


@click.group("transaction", short_help="List, describe and abort transactions; find those that hang.")
def command() -> None:
    """List, describe and abort transactions, and find those that hang.

    \b
    Examples:
      penstock transaction list
      penstock transaction list --state Ongoing --longer-than 1m
      penstock transaction describe orders-1
      penstock transaction producers orders:0
      penstock transaction hanging
      penstock transaction abort orders-1
      penstock transaction abort --partition orders:0 --start-offset 4711
    """


@command.command("list")
@bootstrap_option()
@property_option()
@click.option(
    "--state", "states", multiple=True, help="Only in this state: Ongoing, Empty, CompleteCommit, ..."
)
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Only of this producer id.")
@click.option(
    "--longer-than",
    metavar="DURATION",
    help=f"Only running for longer than so: {DURATION_HELP}; a number alone is milliseconds.",
)
@click.option("--pattern", metavar="REGEX", help="Only ids that match this as a whole.")
@json_option()
def list_transactions(
    bootstrap: str,
    properties: tuple[str, ...],
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: str | None,
    pattern: str | None,
    as_json: bool,
) -> None:
    """List transactional ids, their producer ids and states."""
    longer_than_ms = None if longer_than is None else parse_duration(longer_than, "--longer-than", 1)
    with _admin(bootstrap, properties) as admin:
        found = admin.list_transactions(
            states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
        )
    rows = [
        {
            "transactional_id": one.transactional_id,
            "coordinator": one.coordinator,
            "producer_id": one.producer_id,
            "state": one.state,
        }
        for one in found
    ]
    put_rows("transaction", rows, as_json)


@command.command("describe")
@bootstrap_option()
@property_option()
@click.argument(
    "names", metavar="ID...", nargs=-1, required=True, shell_complete=completion.transactional_ids
)
@json_option()
def describe_transactions(
    bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...], as_json: bool
) -> None:
    """Show producer, state and partitions of transactional IDs."""
    with _admin(bootstrap, properties) as admin:
        found = admin.describe_transactions(names)
    rows = [_described(one) for one in found]
    if as_json:
        for row in rows:
            put_json(row)
        return
    for one, row in zip(found, rows, strict=True):
        put(f"transactional id {readable(one.transactional_id)}, {one.state}, coordinator {one.coordinator}")
        put(f"  producer id {one.producer_id}, epoch {one.producer_epoch}, timeout {one.timeout_ms} ms")
        if row["duration_ms"] is not None:
            where = ", ".join(map(str, one.partitions)) or "no partition"
            put(f"  running for {row['duration_ms']} ms, in {where}")


def _described(one: TransactionDescription) -> dict[str, object]:
    is_running = one.start_time_ms is not None and not one.state.startswith(("Complete", "Empty"))
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "state": one.state,
        "timeout_ms": one.timeout_ms,
        "start_time_ms": one.start_time_ms,
        "duration_ms": int(time.time() * 1000) - one.start_time_ms
        if is_running and one.start_time_ms
        else None,
        "partitions": [str(tp) for tp in one.partitions],
    }


@command.command("producers", short_help="The producers that partitions keep.")
@bootstrap_option()
@property_option()
@click.argument("topics", metavar="TOPIC[:P,P]...", nargs=-1, required=True, shell_complete=completion.topics)
@json_option()
def describe_producers(
    bootstrap: str, properties: tuple[str, ...], topics: tuple[str, ...], as_json: bool
) -> None:
    """List the active producers of partitions, and the start offsets of their open transactions."""
    with _admin(bootstrap, properties) as admin:
        found = admin.describe_producers(numbered(admin, parse_topics(topics)))
    rows = [_producer(tp, each) for tp, producers in found.items() for each in producers]
    put_rows("producer", rows, as_json)


@command.command("hanging", short_help="Transactions that no coordinator will end.")
@bootstrap_option()
@property_option()
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:P,P]",
    shell_complete=completion.topics,
    help="Only in this topic, or in some of its partitions. May be repeated. Default: everywhere.",
)
@click.option(
    "--older-than",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help=f"The longest transaction.timeout.ms of the brokers: {DURATION_HELP}; minutes without unit.",
)
@json_option()
def find_hanging(
    bootstrap: str, properties: tuple[str, ...], topics: tuple[str, ...], older_than: str, as_json: bool
) -> None:
    """List transactions that are open in a partition, and that no coordinator will end."""
    older_than_ms = parse_duration(older_than, "--older-than", MINUTE_MS)
    with _admin(bootstrap, properties) as admin:
        wanted = topics or admin.list_topics(include_internal=True)
        found: list[HangingTransaction] = admin.find_hanging_transactions(
            numbered(admin, parse_topics(wanted)), older_than_ms=older_than_ms
        )
    put_rows("producer", [_producer(one.partition, one.producer) for one in found], as_json)


@command.command("abort", short_help="Abort a transaction, and fence its producer.")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="[ID]", required=False, shell_complete=completion.transactional_ids)
@click.option("--partition", metavar="TOPIC:P", help="Only in this partition: for a transaction that hangs.")
@click.option("--start-offset", type=click.IntRange(0), help="Where the transaction begins in it.")
@click.option("--producer-id", type=int, help="Instead of --start-offset, with the next two.")
@click.option("--producer-epoch", type=int, help="As in the list of producers.")
@click.option("--coordinator-epoch", type=int, help="As in the list of producers. One too high does harm.")
def abort(
    bootstrap: str,
    properties: tuple[str, ...],
    name: str | None,
    partition: str | None,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort the transaction of ID, and fence its producer.

    With --partition, abort a hanging transaction: a marker is written to that partition only.
    """
    if (name is None) == (partition is None):
        raise ConfigError("say which transaction: its ID, or for one that hangs --partition TOPIC:P")
    if name is not None:
        if (start_offset, producer_id, producer_epoch, coordinator_epoch) != (None, None, None, None):
            raise ConfigError("offset, producer and epochs belong to --partition; an ID needs none of them")
        with _admin(bootstrap, properties) as admin:
            admin.describe_transactions([name])
            fenced = admin.fence_producer(name)
        put(f"{readable(name)}: nothing is open; the next epoch is above {fenced.producer_epoch}")
        return
    assert partition is not None
    tp = _partition(partition)
    with _admin(bootstrap, properties) as admin:
        if start_offset is not None:
            if (producer_id, producer_epoch, coordinator_epoch) != (None, None, None):
                raise ConfigError("--start-offset says it all: leave out producer and epochs")
            producer_id = admin.abort_hanging_transaction(tp, start_offset).producer_id
        elif producer_id is None or producer_epoch is None or coordinator_epoch is None:
            raise ConfigError(
                "--partition needs --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch"
            )
        else:
            admin.write_abort_marker(tp, producer_id, producer_epoch, coordinator_epoch)
    put(f"{tp}: the transaction of producer {producer_id} is aborted")


def _producer(tp: TopicPartition, one: PartitionProducer) -> dict[str, object]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "last_sequence": one.last_sequence,
        "last_timestamp_ms": one.last_timestamp_ms,
        "start_offset": one.transaction_start_offset,
    }


def _admin(bootstrap: str, properties: tuple[str, ...]) -> Admin:
    from penstock.client import Admin

    return Admin(bootstrap_servers=bootstrap, config=client_settings(properties))


def _partition(word: str) -> TopicPartition:
    topic, colon, number = word.rpartition(":")
    if not (topic and colon and number.isascii() and number.isdigit()):
        raise ConfigError(f"--partition {word!r}: give TOPIC:NUMBER")
    return TopicPartition(topic, int(number))
