"""``penstock share``: lists, describes and deletes share groups, shows their lag, resets their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from penstock.cli import completion
from penstock.cli.doing import done, quiet_option
from penstock.cli.group import known, places
from penstock.cli.group_reset import ResetTarget, To, parse_target, parse_topics, planned
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import put, put_table
from penstock.cli.partitions import numbered
from penstock.cli.times import DURATION_HELP, TIME_HELP
from penstock.errors import ConfigError
from penstock.model import EARLIEST, LATEST

if TYPE_CHECKING:
    from penstock.client import Admin
    from penstock.client.admin.share_groups import ShareGroupDescription


@click.group("share")
def command() -> None:
    """List, describe, reset and delete share groups (KIP-932).

    \b
    Examples:
      penstock share list
      penstock share describe thumbnails
      penstock share lag thumbnails
      penstock share reset thumbnails --topic images --to-earliest
      penstock share delete thumbnails
    """


@command.command("list")
@bootstrap_option()
@property_option()
@click.option("--state", "states", multiple=True, help="Only groups in this state: Stable, Empty.")
@click.option("-v", "--verbose", is_flag=True, help="Show states, too.")
@json_option()
def list_groups(
    bootstrap: str, properties: tuple[str, ...], states: tuple[str, ...], verbose: bool, as_json: bool
) -> None:
    """List the names of the share groups, one per line."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        groups = admin.list_share_groups(states=states)
    if verbose or as_json:
        rows = [{"group": g.group_id, "state": g.state or None} for g in groups]
        put_rows("share group", rows, as_json)
        return
    for group in groups:
        put(group.group_id)


@command.command("describe", short_help="Members of share groups and their partitions.")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="[GROUP]...", nargs=-1, shell_complete=completion.share_groups)
@json_option()
def describe_groups(
    bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...], as_json: bool
) -> None:
    """Show the members of share groups and their partitions; without a name, of all share groups."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        names = names or tuple(group.group_id for group in admin.list_share_groups())
        groups = admin.describe_share_groups(names) if names else []
    if as_json:
        put_rows("share member", [row for group in groups for row in _member_rows(group)], as_json)
        return
    for group in groups:
        _print_group(group)
    if not groups:
        put("there are no share groups")


def _member_rows(group: ShareGroupDescription) -> list[dict[str, object]]:
    """Return a row for each member, or one row without a member for an empty group."""
    about = {
        "group": group.group_id,
        "state": group.state,
        "epoch": group.epoch,
        "assignor": group.assignor or None,
        "coordinator": group.coordinator.node_id,
    }
    return [
        {
            **about,
            "member": m.member_id,
            "client": m.client_id,
            "host": m.host,
            "partitions": [str(tp) for tp in m.partitions],
        }
        for m in group.members
    ] or [{**about, **dict.fromkeys(("member", "client", "host")), "partitions": []}]


def _print_group(group: ShareGroupDescription) -> None:
    node = group.coordinator
    where = f"coordinator {node.node_id} at {node.host}:{node.port}"
    put(f"share group {group.group_id}, {group.state}, epoch {group.epoch}, {where}")
    rows = [(m.member_id, m.client_id, m.host, places(m.partitions)) for m in group.members]
    if rows:
        put_table(("member", "client", "host", "partitions"), rows)


@command.command("lag", short_help="How many records GROUP has still to handle.")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="GROUP", shell_complete=completion.share_groups)
@json_option()
def show_lag(bootstrap: str, properties: tuple[str, ...], name: str, as_json: bool) -> None:
    """Show the start offset of GROUP in each partition, and how many records it has not yet handled.

    The start offset is that of the first record without a final state. A broker has none before the group
    has handled a record.
    """
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.describe_share_groups([name])
        offsets = admin.list_share_group_offsets(name)
        ends = known(admin.list_offsets(dict.fromkeys(offsets, LATEST)))
    rows: list[dict[str, object]] = [
        {
            "group": name,
            "topic": tp.topic,
            "partition": tp.partition,
            "start": at.start_offset,
            "end": ends.get(tp),
            "lag": at.lag,
        }
        for tp, at in offsets.items()
    ]
    put_rows("share lag", rows, as_json, ("topic", "partition", "start", "end", "lag"))
    if not as_json:
        put(f"total lag {sum(at.lag or 0 for at in offsets.values())}")


@command.command("reset")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="GROUP", shell_complete=completion.share_groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:P,P]",
    shell_complete=completion.topics,
    help="Only this topic, or some of its partitions. May be repeated. Default: all it has begun.",
)
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-offset", type=click.IntRange(0, 2**63 - 1), help="To this offset.")
@click.option("--to-time", metavar="WHEN", help=f"To a time: {TIME_HELP}.")
@click.option("--by-duration", metavar="DURATION", help=f"To so long ago: {DURATION_HELP}.")
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
    execute: bool,
    as_json: bool,
) -> None:
    """Move the start offsets of GROUP, which must have no members.

    Drops its locks and delivery counts. The new offsets are always within the log.
    """
    target = parse_target(
        {
            To.EARLIEST: to_earliest,
            To.LATEST: to_latest,
            To.OFFSET: to_offset,
            To.TIME: to_time,
            To.AGE: by_duration,
        }
    )
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        _reset(admin, name, topics, target, execute, as_json)


def _reset(
    admin: Admin, name: str, topics: Sequence[str], target: ResetTarget, execute: bool, as_json: bool
) -> None:
    offsets = admin.list_share_group_offsets(name)
    starts = {tp: at.start_offset for tp, at in offsets.items() if at.start_offset is not None}
    tps = numbered(admin, parse_topics(topics)) if topics else sorted(offsets)
    if not tps:
        raise ConfigError(f"share group {name!r} has begun nothing: give the --topic to set")
    first = known(admin.list_offsets(dict.fromkeys(tps, EARLIEST)))
    last = known(admin.list_offsets(dict.fromkeys(tps, LATEST)))
    at_time = (
        {tp: None if at is None else at.offset for tp, at in found.items()}
        if target.time_ms is not None and (found := admin.list_offsets(dict.fromkeys(tps, target.time_ms)))
        else {}
    )
    plan = planned(target, tps, starts, first, last, at_time)
    rows: list[dict[str, object]] = [
        {
            "group": name,
            "topic": tp.topic,
            "partition": tp.partition,
            "start": starts.get(tp),
            "new": plan[tp],
            "is_done": execute,
        }
        for tp in tps
    ]
    if execute and as_json:
        admin.alter_share_group_offsets(name, plan)
    put_rows("share reset", rows, as_json, ("topic", "partition", "start", "new"))
    if as_json:
        return
    if not execute:
        put("nothing has been changed; add --execute to do it")
        return
    admin.alter_share_group_offsets(name, plan)
    put(f"share group {name} begins there")


@command.command("delete")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=completion.share_groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    shell_complete=completion.topics,
    help="Delete what they have of this topic only.",
)
@quiet_option()
def delete_groups(
    bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...], topics: tuple[str, ...]
) -> None:
    """Delete share groups that have no members, with their offsets."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        # Groups of other types are not this command's to delete.
        admin.describe_share_groups(names)
        for name in names:
            if topics:
                admin.delete_share_group_offsets(name, topics)
                done(f"deleted what share group {name} has of {', '.join(topics)}")
        if not topics:
            admin.delete_groups(names)
            for name in names:
                done(f"deleted share group {name}")
