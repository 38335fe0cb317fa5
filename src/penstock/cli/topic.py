"""``penstock topic``: lists, creates, describes, changes and deletes topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.doing import done, quiet_option
from penstock.cli.listing import json_option, put_json, put_rows
from penstock.cli.options import bootstrap_option, client_settings, pairs, property_option
from penstock.cli.outcome import counted, one_line, put, say
from penstock.cli.times import TIME_HELP, parse_time
from penstock.errors import KafkaError, UnsupportedVersionError
from penstock.model import EARLIEST, LATEST, TopicPartition

if TYPE_CHECKING:
    from penstock.client import Admin, OffsetAt
    from penstock.client.admin.configs import ConfigValue
    from penstock.client.admin.topics import TopicDescription
    from penstock.client.cluster.metadata import PartitionInfo
    from penstock.client.fetch.offsets import Answers


@click.group("topic")
def command() -> None:
    """List, create, delete, describe and change topics.

    \b
    Examples:
      penstock topic list
      penstock topic create delays --partitions 6 --config retention.ms=-1
      penstock topic create orders payments refunds
      penstock topic describe delays
      penstock topic describe                       all of them
      penstock topic grow delays --partitions 12
      penstock topic trim delays --before 0:1000
      penstock topic delete delays
    """


@command.command("list")
@bootstrap_option()
@property_option()
@click.option("--internal", is_flag=True, help="Topics of the cluster itself, too.")
@click.option("-v", "--verbose", is_flag=True, help="Show ids and numbers of partitions and replicas, too.")
@json_option()
def list_topics(
    bootstrap: str, properties: tuple[str, ...], internal: bool, verbose: bool, as_json: bool
) -> None:
    """List the names of the topics, one per line."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        names = admin.list_topics(include_internal=internal)
        if not (verbose or as_json):
            for name in names:
                put(name)
            return
        topics = admin.describe_topics(names) if names else []
    put_rows("topic", map(_topic_row, topics), as_json)


def _topic_row(topic: TopicDescription) -> dict[str, object]:
    first = topic.partitions[0] if topic.partitions else None
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "partitions": len(topic.partitions),
        "replicas": len(first.replicas) if first is not None else 0,
        "is_internal": topic.is_internal,
    }


@command.command("create")
@bootstrap_option()
@property_option(has_config=False)
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1, 2**31 - 1),
    default=1,
    show_default=True,
    help="Number of partitions of each.",
)
@click.option(
    "-r",
    "--replication-factor",
    type=click.IntRange(1, 2**15 - 1),
    help="Number of copies; without it the broker decides.",
)
@click.option("--config", metavar="NAME=VALUE", multiple=True, help="A topic setting; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
@quiet_option()
def create_topics(
    bootstrap: str,
    properties: tuple[str, ...],
    names: tuple[str, ...],
    partitions: int,
    replication_factor: int | None,
    config: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create topics. If one cannot be created, the others still are."""
    settings = pairs(config, "--config")
    from penstock.client import Admin
    from penstock.protocol.error_codes import ErrorCode

    failures: list[KafkaError] = []
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        for name in dict.fromkeys(names):
            try:
                admin.create_topic(name, partitions, replication_factor or -1, settings)
            except KafkaError as error:
                if if_not_exists and error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                    done(f"topic {name} is there already")
                else:
                    failures.append(error)
            else:
                done(f"created topic {name} with {counted(partitions, 'partition')}")
    if failures:
        for failure in failures[:-1]:
            say(one_line(failure))
        raise failures[-1]


@command.command("delete")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=completion.topics)
@quiet_option()
def delete_topics(bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Delete topics and everything in them."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.delete_topics(names)
    for name in names:
        done(f"deleted topic {name}")


@command.command("grow")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="TOPIC", shell_complete=completion.topics)
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1, 2**31 - 1),
    required=True,
    help="How many it is to have altogether.",
)
@quiet_option()
def grow_topic(bootstrap: str, properties: tuple[str, ...], name: str, partitions: int) -> None:
    """Add partitions to TOPIC. From then on, keys may be assigned to other partitions."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.create_partitions(name, partitions)
    done(f"topic {name} has {counted(partitions, 'partition')} now")


@command.command("trim", short_help="Delete the oldest records of TOPIC, or all.")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="TOPIC", shell_complete=completion.topics)
@click.option(
    "--before",
    metavar="PARTITION:OFFSET",
    multiple=True,
    help="Delete the records below this offset; may be repeated. Without it, all records of TOPIC.",
)
@click.option(
    "--before-time",
    metavar="TIME",
    help=f"Delete the records before the first at or after this time: {TIME_HELP}.",
)
@json_option()
def trim_topic(
    bootstrap: str,
    properties: tuple[str, ...],
    name: str,
    before: tuple[str, ...],
    before_time: str | None,
    as_json: bool,
) -> None:
    """Delete the oldest records of TOPIC, or all; print the new first offset of each partition."""
    from penstock.client import Admin
    from penstock.client.admin.logs import HIGH_WATERMARK

    if before and before_time is not None:
        raise click.UsageError("--before and --before-time exclude each other")
    time_ms = None if before_time is None else parse_time(before_time, "--before-time")
    bounds = dict(_bound(word) for word in before)
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        if not bounds:
            (topic,) = admin.describe_topics([name])
            bounds = {partition.partition: HIGH_WATERMARK for partition in topic.partitions}
            if time_ms is not None:
                found = admin.list_offsets({TopicPartition(name, number): time_ms for number in bounds})
                bounds |= {tp.partition: at.offset for tp, at in found.items() if at is not None}
        starts = admin.delete_records({(name, index): offset for index, offset in bounds.items()})
    for tp in sorted(starts):
        if as_json:
            row = {"topic": tp.topic, "partition": tp.partition, "offset": starts[tp], "timestamp_ms": None}
            put_json(row)
        else:
            put(f"{tp.topic} {tp.partition} {starts[tp]}")


def _bound(word: str) -> tuple[int, int]:
    index, _, offset = word.partition(":")
    numbers = r"[0-9]{1,9}:[0-9]{1,18}"
    if not re.fullmatch(numbers, word):
        raise click.UsageError(f"--before takes PARTITION:OFFSET, not {word!r}")
    return int(index), int(offset)


@command.command("describe", short_help="Partitions of topics, and settings that are not the default.")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="[TOPIC]...", nargs=-1, shell_complete=completion.topics)
@json_option()
def describe_topics(
    bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...], as_json: bool
) -> None:
    """Show the partitions of topics, their first and next offsets, and the settings that are not defaults.

    Without a name, all topics except the cluster's internal ones are shown.
    """
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        names = names or tuple(admin.list_topics())
        topics = admin.describe_topics(names) if names else []
        tps = [(topic.name, partition.partition) for topic in topics for partition in topic.partitions]
        wanted = [TopicPartition(*each) for each in tps]
        first = admin.list_offsets(dict.fromkeys(wanted, EARLIEST)) if wanted else {}
        last = admin.list_offsets(dict.fromkeys(wanted, LATEST)) if wanted else {}
        settings = {} if as_json else {name: _settings(admin, name) for name in names}
    if as_json:
        rows = [
            _partition_row(tp, one, first[tp], last[tp])
            for topic in topics
            for one in topic.partitions
            for tp in (TopicPartition(topic.name, one.partition),)
        ]
        put_rows("partition", rows, as_json)
        return
    for number, topic in enumerate(topics):
        if number:
            put()
        _print_topic(topic, first, last, settings[topic.name])
    if not topics:
        put("there are no topics")


def _settings(admin: Admin, name: str) -> Mapping[str, ConfigValue] | None:
    """Return the settings of a topic, or None from a broker before 0.11, which has no such request."""
    try:
        return admin.describe_config(name)
    except UnsupportedVersionError:
        return None


def _print_topic(
    topic: TopicDescription,
    first: Answers,
    last: Answers,
    settings: Mapping[str, ConfigValue] | None,
) -> None:
    put(f"topic {topic.name}, id {topic.topic_id or 'none'}")
    rows = [("partition", "leader", "replicas", "in sync", "first offset", "next offset")]
    for partition in topic.partitions:
        tp = TopicPartition(topic.name, partition.partition)
        copies = (_numbers(partition.replicas), _numbers(partition.in_sync_replicas))
        ends = (_offset(first[tp]), _offset(last[tp]))
        rows.append((str(tp.partition), str(partition.leader), *copies, *ends))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        put("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    if settings is None:
        put("settings unknown: the broker is older than Kafka 0.11 and cannot list them")
    for setting in sorted(settings or ()):
        if settings and not settings[setting].is_default:
            put(f"{setting}={settings[setting].value}")


def _partition_row(
    tp: TopicPartition, partition: PartitionInfo, first: OffsetAt | None, last: OffsetAt | None
) -> dict[str, object]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "in_sync": list(partition.in_sync_replicas),
        "first_offset": None if first is None else first.offset,
        "next_offset": None if last is None else last.offset,
    }


def _numbers(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))


def _offset(answer: OffsetAt | None) -> str:
    return "unknown" if answer is None else str(answer.offset)
