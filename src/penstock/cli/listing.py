"""The output of listing commands: one schema for each kind of row, as a table or as lines of JSON.

The schemas are stable: fields may be added, but are never renamed, retyped or removed.
``docs/reference/command-line-json.md`` lists them, and a test compares that page with this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from penstock.cli.outcome import is_terminal, put, put_table


class ListingField(NamedTuple):
    """A field in the rows of a listing command: its name, its JSON type, and its meaning."""

    name: str
    type: str
    meaning: str


def _fields(*rows: tuple[str, str, str]) -> tuple[ListingField, ...]:
    return tuple(ListingField(*row) for row in rows)


TOPIC = ("topic", "text", "the name of the topic")
PARTITION = ("partition", "number", "the number of the partition")
GROUP = ("group", "text", "the group's id")
PRODUCER_ID = ("producer_id", "number", "the id that brokers know the producer by")

NOUNS: Mapping[str, tuple[ListingField, ...]] = {
    "broker": _fields(
        ("broker", "number", "the broker's id"),
        ("host", "text", "where clients reach it"),
        ("port", "number", "the port there"),
        ("rack", "text or null", "its rack"),
        ("is_controller", "boolean", "whether the cluster names it as the controller"),
    ),
    "cluster": _fields(
        ("cluster_id", "text or null", "the cluster's id; null before Kafka 0.10.1"),
        ("controller", "number", "the id of the controller, -1 where none is known"),
        ("brokers", "number", "how many brokers there are"),
        ("topics", "number", "how many topics, without internal ones"),
        ("partitions", "number", "how many partitions these have"),
        ("leaderless", "number", "how many of them have no leader"),
        ("under_replicated", "number", "how many have replicas that are not in sync"),
    ),
    "node": _fields(
        ("broker", "number", "the broker's id"),
        ("address", "text", "where clients reach it"),
        ("state", "text", "`running`, `paused` or `stopped`"),
        ("is_fenced", "boolean", "whether the controller takes it for dead"),
        ("is_frozen", "boolean", "whether it follows no leaders"),
        ("is_cut_from_clients", "boolean", "whether no client is answered"),
    ),
    "topic": _fields(
        TOPIC,
        ("topic_id", "text or null", "its id; null before Kafka 2.8"),
        ("partitions", "number", "how many partitions it has"),
        ("replicas", "number", "how many replicas its first partition has"),
        ("is_internal", "boolean", "whether it belongs to the cluster itself"),
    ),
    "partition": _fields(
        TOPIC,
        PARTITION,
        ("leader", "number", "the broker that leads it, -1 for none"),
        ("replicas", "numbers", "the brokers that have it"),
        ("in_sync", "numbers", "those of them that are in sync"),
        ("first_offset", "number or null", "the first offset there is; null without a leader"),
        ("next_offset", "number or null", "the offset of the next record"),
    ),
    "offset": _fields(
        TOPIC,
        PARTITION,
        ("offset", "number or null", "the offset that was asked for; null where no record is that young"),
        ("timestamp_ms", "number or null", "the time of the record there, where the question was a time"),
    ),
    "setting": _fields(
        ("topic", "text or null", "the topic it is set for"),
        ("broker", "number or null", "the broker it is set for"),
        ("name", "text", "its name"),
        ("value", "text or null", "its value; null where it is hidden or has none"),
        ("is_default", "boolean", "whether that is the default"),
        ("is_read_only", "boolean", "whether it takes a restart to change it"),
        ("is_sensitive", "boolean", "whether its value is hidden"),
    ),
    "client setting": _fields(
        ("name", "text", "its name"),
        ("value", "text", "its value; secrets are `(hidden)`"),
        ("origin", "text", "where it stands"),
    ),
    "profile": _fields(
        ("profile", "text", "its name"),
        ("is_used", "boolean", "whether this command would use it"),
        ("bootstrap_servers", "text or null", "the cluster it is about"),
    ),
    "logdir": _fields(
        ("broker", "number", "the broker that has it"),
        ("path", "text", "where it is there"),
        ("partitions", "number", "how many partitions are in it"),
        ("bytes", "number", "their size"),
        ("total_bytes", "number or null", "the size of the volume; null before Kafka 3.3"),
        ("usable_bytes", "number or null", "what is free of it"),
    ),
    "partition size": _fields(
        TOPIC,
        PARTITION,
        ("broker", "number", "the broker that has it"),
        ("path", "text", "the data directory there"),
        ("bytes", "number", "its size"),
    ),
    "group": _fields(
        GROUP,
        ("state", "text or null", "its state; null before Kafka 2.6"),
        ("type", "text or null", "the type of its protocol: `consumer`, or that of another kind of group"),
    ),
    "member": _fields(
        GROUP,
        ("state", "text", "the state of the group"),
        ("assignor", "text or null", "the assignor that its members agreed on"),
        ("coordinator", "number", "the broker that coordinates it"),
        ("member", "text or null", "the member's id; null in a line for a group without members"),
        ("instance", "text or null", "its static id"),
        ("client", "text or null", "its client id"),
        ("host", "text or null", "where it runs"),
        ("partitions", "texts", "what it reads, as `topic-partition`"),
    ),
    "lag": _fields(
        GROUP,
        TOPIC,
        PARTITION,
        ("committed", "number or null", "the offset that the group has committed"),
        ("end", "number or null", "the offset of the next record"),
        ("lag", "number or null", "how far the first is behind the second"),
        ("member", "text or null", "the member that reads it"),
    ),
    "reset": _fields(
        GROUP,
        TOPIC,
        PARTITION,
        ("committed", "number or null", "the offset that the group has committed"),
        ("new", "number", "where it is moved, or would be"),
        ("is_done", "boolean", "whether it was moved"),
    ),
    "share group": _fields(
        GROUP,
        ("state", "text or null", "its state"),
    ),
    "share member": _fields(
        GROUP,
        ("state", "text", "the state of the group"),
        ("epoch", "number", "the group's epoch"),
        ("assignor", "text or null", "the assignor of the broker"),
        ("coordinator", "number", "the broker that coordinates it"),
        ("member", "text or null", "the member's id; null in a line for a group without members"),
        ("client", "text or null", "its client id"),
        ("host", "text or null", "where it runs"),
        ("partitions", "texts", "what it fetches from, as `topic-partition`"),
    ),
    "share lag": _fields(
        GROUP,
        TOPIC,
        PARTITION,
        ("start", "number or null", "the first record not finally handled; null before any was"),
        ("end", "number or null", "the offset of the next record"),
        ("lag", "number or null", "how many records are still to be handled"),
    ),
    "share reset": _fields(
        GROUP,
        TOPIC,
        PARTITION,
        ("start", "number or null", "the first record not finally handled; null before any was"),
        ("new", "number", "where it is moved, or would be"),
        ("is_done", "boolean", "whether it was moved"),
    ),
    "transaction": _fields(
        ("transactional_id", "text", "its id"),
        ("coordinator", "number", "the broker that coordinates it"),
        PRODUCER_ID,
        ("state", "text", "its state"),
    ),
    "transaction description": _fields(
        ("transactional_id", "text", "its id"),
        ("coordinator", "number", "the broker that coordinates it"),
        PRODUCER_ID,
        ("producer_epoch", "number", "its epoch"),
        ("state", "text", "its state"),
        ("timeout_ms", "number", "after how long the coordinator aborts it"),
        ("start_time_ms", "number or null", "when it began"),
        ("duration_ms", "number or null", "how long it has been running; null where none is open"),
        ("partitions", "texts", "what it has written to, as `topic-partition`"),
    ),
    "producer": _fields(
        TOPIC,
        PARTITION,
        PRODUCER_ID,
        ("producer_epoch", "number", "its epoch"),
        ("coordinator_epoch", "number", "the epoch of its last marker"),
        ("last_sequence", "number", "the sequence number of its last record"),
        ("last_timestamp_ms", "number", "the time of its last batch"),
        ("start_offset", "number or null", "where its open transaction begins; null where none is open"),
    ),
    "acl": _fields(
        ("permission", "text", "`allow` or `deny`"),
        ("principal", "text", "for whom, as `User:ann`"),
        ("host", "text", "from where; `*` for everywhere"),
        ("operation", "text", "what"),
        ("resource_type", "text", "the kind of resource"),
        ("resource", "text", "its name, or the beginning of names"),
        ("pattern_type", "text", "`literal` or `prefixed`"),
        ("rule", "text", "all of that as `penstock acl add` takes it"),
    ),
    "user": _fields(
        ("user", "text", "the name"),
        ("mechanism", "text", "the mechanism that it has a password for"),
        ("iterations", "number", "iterations of the hash"),
    ),
    "gateway client": _fields(
        ("software", "text", "the name of the client's software; empty where it sends none"),
        ("software_version", "text", "its version"),
        ("client_id", "text", "its client id, where it sends no software; empty otherwise"),
        ("address", "text", "the address of its machine"),
        ("api", "text", "the API, such as `Produce`"),
        ("version", "number", "the version of the API"),
        ("requests", "number", "how many requests have come since the gateway began"),
        ("request_bytes", "number", "the bytes of these requests"),
        ("response_bytes", "number", "the bytes of their responses"),
        ("is_spoken", "boolean", "whether the broker met last has this version"),
    ),
    "subject": _fields(
        ("subject", "text", "the name of the subject"),
        ("version", "number", "its newest version"),
        ("id", "number", "the id of that version's schema"),
        ("type", "text", "AVRO, JSON or PROTOBUF"),
    ),
    "quota": _fields(
        ("user", "text or null", "the user; `<default>` for all that have none of their own"),
        ("client_id", "text or null", "the client id; `<default>` for all that have none of their own"),
        ("ip", "text or null", "the address; `<default>` for all that have none of their own"),
        ("quota", "text", "the name of the quota"),
        ("value", "number", "its value"),
    ),
    "client metric": _fields(
        ("client_instance_id", "text", "the id that the broker has given the client"),
        ("client_id", "text", "the client id"),
        ("software_name", "text", "the client library"),
        ("software_version", "text", "its version"),
        ("address", "text", "where the client runs"),
        ("name", "text", "the metric"),
        ("labels", "object", "its labels, such as the topic"),
        ("kind", "text", "`gauge`, or `sum` for what only grows"),
        ("value", "number or null", "its newest value; null where that is no number"),
        ("time_ms", "number", "when the broker received it"),
        ("attributes", "object", "labels of the client, such as its `group_id`"),
        ("is_last", "boolean", "whether the client has closed"),
    ),
    "topic rate": _fields(
        ("time_ms", "number", "when it was measured"),
        TOPIC,
        ("partitions", "number", "how many partitions it has"),
        ("records", "number", "offsets from the first to the next, over all partitions"),
        ("records_per_s", "number or null", "what was added a second since the line before; null at first"),
        ("bytes", "number or null", "its size on all brokers; null where they do not report it"),
        ("bytes_per_s", "number or null", "by how much that grew a second"),
    ),
    "group rate": _fields(
        ("time_ms", "number", "when it was measured"),
        GROUP,
        ("state", "text or null", "its state"),
        ("partitions", "number", "how many partitions it has committed offsets of"),
        ("lag", "number", "how far it is behind their ends"),
        ("records_per_s", "number or null", "what it committed a second since the line before, or null"),
    ),
    "perf": _fields(
        ("what", "text", "`produce` or `consume`"),
        ("records", "number", "how many there were"),
        ("bytes", "number", "of keys and values"),
        ("seconds", "number", "how long it took"),
        ("records_per_s", "number", "the rate"),
        ("bytes_per_s", "number", "the rate in bytes"),
        ("p50_ms", "number or null", "half took no longer; null where there is nothing to measure"),
        ("p95_ms", "number or null", "95 in 100 took no longer"),
        ("p99_ms", "number or null", "99 in 100 took no longer"),
        ("max_ms", "number or null", "the longest"),
        ("is_total", "boolean", "whether this is about all of it, and not about the last second"),
    ),
    "mirror": _fields(
        TOPIC,
        PARTITION,
        ("target", "text", "the topic that the copy goes to"),
        ("copied", "number", "records copied by this command"),
        ("position", "number", "the next offset to be copied"),
        ("end", "number", "the end of the partition when it was looked at last"),
        ("moved", "number", "offsets of groups moved by this command"),
    ),
    "land": _fields(
        TOPIC,
        ("table", "text", "the table, as --to names it, without passwords"),
        ("rows", "number", "rows committed by this command"),
        ("dead", "number", "records that did not fit, written to the table of dead letters"),
        ("files", "number", "files committed by this command"),
        ("bytes", "number", "how many bytes these have"),
        ("commits", "number", "commits of this command"),
        ("lag", "number", "offsets that were left to read at the last commit"),
    ),
    "land status": _fields(
        TOPIC,
        PARTITION,
        ("table", "text", "the table, as --to names it, without passwords"),
        ("position", "number", "the next offset to be landed"),
        ("end", "number", "the end of the partition"),
        ("lag", "number", "offsets between the two"),
        ("table_rows", "number", "rows in the files of the table, of all writers"),
        ("table_files", "number", "how many files it has"),
        ("table_bytes", "number", "how many bytes these have"),
        ("snapshots", "number", "how many snapshots, versions or batches it has"),
    ),
    "land tidy": _fields(
        TOPIC,
        ("table", "text", "the table, as --to names it, without passwords"),
        ("compacted_files", "number", "files that were put together"),
        ("compacted_into", "number", "how many files they became"),
        ("expired_snapshots", "number", "snapshots that have expired"),
        ("orphans", "number", "files removed that no commit names"),
    ),
    "mirror check": _fields(
        TOPIC,
        PARTITION,
        ("same", "number", "records that are the same on both sides"),
        ("only_source", "number", "records that the target has removed since"),
        ("only_target", "number", "records that the source has removed since"),
        ("not_in_map", "number", "records copied before there was a map; they are not compared"),
        ("different", "number", "records that differ, are missing, or are not of the copy"),
    ),
}  # fmt: skip


def json_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``-J`` or ``--json`` of every listing command."""
    return click.option("-J", "--json", "as_json", is_flag=True, help="One line of JSON for each.")


def put_rows(
    noun: str,
    rows: Iterable[Mapping[str, object]],
    as_json: bool,
    columns: Sequence[str] | None = None,
    *,
    is_always_shown: bool = True,
) -> None:
    """Print rows with the fields `NOUNS[noun]`: each row as a line of JSON, or all rows as a table.

    The table has `columns`, by default all. With `is_always_shown`, the table's head is printed even if there
    are no rows.
    """
    fields = NOUNS[noun]
    if as_json:
        for row in rows:
            put_json({field.name: row[field.name] for field in fields})
        return
    names = columns or [field.name for field in fields]
    cells = [[_cell(row[name]) for name in names] for row in rows]
    if cells or is_always_shown:
        put_table([name.replace("_", " ") for name in names], cells)


def put_json(row: Mapping[str, object]) -> None:
    """Print a line of JSON; escape it to ASCII on a terminal if it has unprintable characters."""
    line = json.dumps(row, ensure_ascii=False)
    put(json.dumps(row) if is_terminal() and not line.isprintable() else line)


def _cell(value: object) -> str:
    if value is None or value == [] or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if isinstance(value, float):
        return f"{value:,.1f}".rstrip("0").rstrip(".")
    return str(value)
