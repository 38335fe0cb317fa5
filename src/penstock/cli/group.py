"""``penstock group``: lists, describes and deletes consumer groups, shows their lag, resets their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.doing import done, quiet_option
from penstock.cli.group_reset import ResetTarget, To, parse_target, parse_topics, planned
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import counted, put, put_table
from penstock.cli.partitions import numbered
from penstock.cli.times import DURATION_HELP, TIME_HELP
from penstock.errors import ConfigError, KafkaError, UnsupportedVersionError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.protocol.error_codes import ErrorCode

SHARE_PROTOCOL = "share"

if TYPE_CHECKING:
    from penstock.client import Admin
    from penstock.client.admin.groups import GroupDescription, MemberDescription
    from penstock.client.fetch.offsets import Answers


@click.group("group")
def command() -> None:
    """List, describe, reset and delete consumer groups.

    \b
    Examples:
      penstock group list
      penstock group describe billing
      penstock group describe                       all of them
      penstock group lag billing
      penstock group reset billing --topic orders --to-earliest
      penstock group delete billing
    """


@command.command("list")
@bootstrap_option()
@property_option()
@click.option("--state", "states", multiple=True, help="Only groups in this state: Stable, Empty, ...")
@click.option("-v", "--verbose", is_flag=True, help="Show states and protocol types, too.")
@json_option()
def list_groups(
    bootstrap: str, properties: tuple[str, ...], states: tuple[str, ...], verbose: bool, as_json: bool
) -> None:
    """List the names of the groups, one per line."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        groups = admin.list_groups(states=states)
    if verbose or as_json:
        rows = [
            {"group": g.group_id, "state": g.state or None, "type": g.protocol_type or None} for g in groups
        ]
        put_rows("group", rows, as_json)
        return
    for group in groups:
        put(group.group_id)


@command.command("describe", short_help="Members of groups and what each of them reads.")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="[GROUP]...", nargs=-1, shell_complete=completion.groups)
@json_option()
def describe_groups(
    bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...], as_json: bool
) -> None:
    """Show the members of groups and their partitions; without a name, of all groups."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        names = names or tuple(group.group_id for group in admin.list_groups())
        groups = admin.describe_groups(names) if names else []
    if as_json:
        put_rows("member", [row for group in groups for row in _member_rows(group)], as_json)
        return
    for group in groups:
        _print_group(group)
    if not groups:
        put("there are no groups")


def _member_rows(group: GroupDescription) -> list[dict[str, object]]:
    """Return an output row for each member of a group, or one row without a member for an empty group."""
    about = {
        "group": group.group_id,
        "state": group.state,
        "assignor": group.assignor or None,
        "coordinator": group.coordinator.node_id,
    }
    return [
        {
            **about,
            "member": m.member_id,
            "instance": m.group_instance_id,
            "client": m.client_id,
            "host": m.host,
            "partitions": [str(tp) for tp in m.partitions],
        }
        for m in group.members
    ] or [{**about, **dict.fromkeys(("member", "instance", "client", "host")), "partitions": []}]


def _print_group(group: GroupDescription) -> None:
    node = group.coordinator
    assignor = f", assignor {group.assignor}" if group.assignor else ""
    tp = f"coordinator {node.node_id} at {node.host}:{node.port}"
    put(f"group {group.group_id}, {group.state}{assignor}, {tp}")
    rows = [
        (m.member_id, m.group_instance_id or "-", m.client_id, m.host, places(m.partitions))
        for m in group.members
    ]
    if rows:
        put_table(("member", "instance", "client", "host", "partitions"), rows)


@command.command("lag", short_help="How far GROUP is behind the ends of partitions.")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="GROUP", shell_complete=completion.groups)
@json_option()
def show_lag(bootstrap: str, properties: tuple[str, ...], name: str, as_json: bool) -> None:
    """Show how far GROUP is behind the end of each partition that it reads or has read."""
    from penstock.client import Admin
    from penstock.client.admin.groups import lags

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        committed = admin.list_group_offsets(name)
        members = _members(admin, name, has_offsets=bool(committed))
        readers = {tp: member for member in members for tp in member.partitions}
        tps = sorted(committed.keys() | readers.keys())
        ends = known(admin.list_offsets(dict.fromkeys(tps, LATEST)))
    behind = lags(committed, ends)
    rows = []
    for tp in tps:
        offset, lag, reader = committed.get(tp), behind.get(tp), readers.get(tp)
        rows.append(
            {
                "group": name,
                "topic": tp.topic,
                "partition": tp.partition,
                "committed": None if offset is None else offset.offset,
                "end": ends.get(tp),
                "lag": lag,
                "member": None if reader is None else reader.group_instance_id or reader.member_id,
            }
        )
    put_rows("lag", rows, as_json, ("topic", "partition", "committed", "end", "lag", "member"))
    if not as_json:
        put(f"total lag {sum(filter(None, behind.values()))}")


def _members(admin: Admin, name: str, *, has_offsets: bool) -> Sequence[MemberDescription]:
    """Return the members of a group; none if the group is empty, or its broker too old to list them.

    Raises an error if the group does not exist, or is a share group.
    """
    try:
        (group,) = admin.describe_groups([name])
        if group.protocol_type == SHARE_PROTOCOL:
            raise ConfigError(f"group {name!r} is a share group: penstock share lag {name}")
        return group.members
    except UnsupportedVersionError:  # before 0.9 they are known to ZooKeeper alone
        return ()
    except KafkaError as error:
        # Before 0.10.1 a group without members is as good as dead.
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND or not has_offsets:
            raise
        return ()


@command.command("reset")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="GROUP", shell_complete=completion.groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:P,P]",
    shell_complete=completion.topics,
    help="Only this topic, or some of its partitions. May be repeated. Default: all that was committed.",
)
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-offset", type=click.IntRange(0, 2**63 - 1), help="To this offset.")
@click.option("--to-time", metavar="WHEN", help=f"To a time: {TIME_HELP}.")
@click.option("--by-duration", metavar="DURATION", help=f"To so long ago: {DURATION_HELP}.")
@click.option(
    "--shift-by",
    type=click.IntRange(-(2**63), 2**63 - 1),
    metavar="N",
    help="So many records on, or back where negative.",
)
@click.option("--execute", is_flag=True, help="Do it. Without this the plan is shown, and nothing changed.")
@json_option()
def reset_offsets(
    bootstrap: str,
    properties: tuple[str, ...],
    name: str,
    topics: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_time: str | None,
    by_duration: str | None,
    shift_by: int | None,
    execute: bool,
    as_json: bool,
) -> None:
    """Move the offsets of GROUP, which must have no active members.

    Without --execute, only shows the new offset of each partition, which is always within the log.
    """
    target = parse_target(
        {
            To.EARLIEST: to_earliest,
            To.LATEST: to_latest,
            To.OFFSET: to_offset,
            To.TIME: to_time,
            To.AGE: by_duration,
            To.SHIFT: shift_by,
        }
    )
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        _reset(admin, name, topics, target, execute, as_json)


def _reset(
    admin: Admin, name: str, topics: Sequence[str], target: ResetTarget, execute: bool, as_json: bool
) -> None:
    committed = {tp: at.offset for tp, at in admin.list_group_offsets(name).items()}
    tps = _partitions_to_reset(admin, name, topics, committed)
    first = known(admin.list_offsets(dict.fromkeys(tps, EARLIEST)))
    last = known(admin.list_offsets(dict.fromkeys(tps, LATEST)))
    at_time = (
        {tp: None if at is None else at.offset for tp, at in found.items()}
        if target.time_ms is not None and (found := admin.list_offsets(dict.fromkeys(tps, target.time_ms)))
        else {}
    )
    plan = planned(target, tps, committed, first, last, at_time)
    rows = [
        {
            "group": name,
            "topic": tp.topic,
            "partition": tp.partition,
            "committed": committed.get(tp),
            "new": plan[tp],
            "is_done": execute,
        }
        for tp in tps
    ]
    if execute and as_json:
        admin.alter_group_offsets(name, plan)
    put_rows("reset", rows, as_json, ("topic", "partition", "committed", "new"))
    if as_json:
        return
    if not execute:
        put("nothing has been changed; add --execute to do it")
        return
    admin.alter_group_offsets(name, plan)
    put(f"the offsets of group {name} have been set")


def _partitions_to_reset(
    admin: Admin, name: str, topics: Sequence[str], committed: Iterable[TopicPartition]
) -> list[TopicPartition]:
    if not topics:
        tps = sorted(committed)
        if not tps:
            raise ConfigError(f"group {name!r} has committed nothing: give the --topic to set")
        return tps
    return numbered(admin, parse_topics(topics))


@command.command("delete")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=completion.groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    shell_complete=completion.topics,
    help="Delete the offsets of this topic only.",
)
@quiet_option()
def delete_groups(
    bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...], topics: tuple[str, ...]
) -> None:
    """Delete groups that have no members, with their offsets."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        if not topics:
            admin.delete_groups(names)
            for name in names:
                done(f"deleted group {name}")
            return
        for name in names:
            gone = [tp for tp in admin.list_group_offsets(name) if tp.topic in topics]
            if not gone:
                raise ConfigError(f"group {name!r} has no offsets of {' or '.join(topics)}")
            admin.delete_group_offsets(name, gone)
            done(f"deleted {counted(len(gone), 'offset')} of group {name}")


def known(answers: Answers) -> dict[TopicPartition, int]:
    """Return `answers`, a dict from partition to offset, without the partitions that have no offset."""
    return {tp: at.offset for tp, at in answers.items() if at is not None}


def places(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as one line of text: ``orders:0,1 letters:2``."""
    topics: dict[str, list[str]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(str(number))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or "-"
