"""The subcommands of ``penstock cluster`` that control ``penstock broker --brokers N``, such as kill."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import click

from penstock.cli import waiting
from penstock.cli.doing import done, quiet_option
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option
from penstock.cli.times import parse_duration
from penstock.errors import ConfigError, NetworkError, PenstockError

PATIENCE_S = 60.0
"""The timeout of a control operation in seconds: a stop waits until the broker's leaderships have moved."""

NODE = click.argument("node", metavar="BROKER", type=click.IntRange(1))
TOPIC = click.argument("topic")
PARTITION = click.argument("partition", type=click.IntRange(0))


def move(bootstrap: str, lever: str, **arguments: object) -> Any:
    """Run the control operation `lever`, such as kill, in a local cluster; return the operation's result.

    Raises:
        NetworkError: no such cluster runs on this machine under this user.
        PenstockError: the operation is not possible.
    """
    from penstock.broker.lever_socket import check_is_private, directory, has_sockets, socket_path

    if not has_sockets():
        raise ConfigError(
            "levers are moved through Unix sockets, not known here; use penstock.testing.KafkaCluster"
        )
    for address in bootstrap.split(","):
        port = address.rpartition(":")[2]
        if not port.isdecimal():
            continue
        waiting.idle(f"the cluster at {address} has not answered {lever}; for {PATIENCE_S:.0f} s at most")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE_S)
            try:
                check_is_private(directory())
                connection.connect(socket_path(int(port)))
                given = {name: value for name, value in arguments.items() if value is not None}
                connection.sendall(json.dumps({"lever": lever, "with": given}).encode() + b"\n")
                with connection.makefile("rb") as answers:
                    answer = json.loads(answers.readline() or b"{}")
            except (FileNotFoundError, ConnectionRefusedError):
                continue
            except OSError as error:
                raise NetworkError(f"the cluster at {address} does not answer: {error}") from None
        if "error" in answer:
            raise PenstockError(str(answer["error"]))
        return answer.get("value")
    raise NetworkError(
        f"no cluster with levers at {bootstrap}: start one with penstock broker --brokers 3 on this machine,"
        " as this user, and name its first broker"
    )


def add_levers(group: click.Group) -> None:
    """Add the control subcommands to ``penstock cluster``."""
    for command in (
        nodes, start, stop, kill, restart, fence, pause, resume, cut, slow, heal, freeze, thaw, shrink_isr,
        move_leader, elect, move_coordinator, advance, clock,
    ):  # fmt: skip
        group.add_command(command)


def _lever(
    name: str, summary: str, *, changes: bool = True
) -> Callable[[Callable[..., None]], click.Command]:
    def made(function: Callable[..., None]) -> click.Command:
        options = quiet_option()(function) if changes else function
        return click.command(name, short_help=summary)(bootstrap_option()(options))

    return made


@_lever("nodes", "The brokers, and what levers have done to them.", changes=False)
@json_option()
def nodes(bootstrap: str, as_json: bool) -> None:
    """List the brokers of a cluster of penstock broker --brokers N, and the state of each."""
    put_rows("node", move(bootstrap, "nodes"), as_json)


@_lever("start", "Start a broker that was stopped or killed.")
@NODE
def start(bootstrap: str, node: int) -> None:
    """Start a broker that was stopped or killed, with its former port and data."""
    move(bootstrap, "start", node=node)
    done(f"broker {node} runs")


@_lever("stop", "Stop a broker in order.")
@NODE
def stop(bootstrap: str, node: int) -> None:
    """Stop a broker cleanly: its leaderships move before its connections close."""
    move(bootstrap, "stop", node=node)
    done(f"broker {node} is stopped")


@_lever("kill", "End a broker as under kill -9.")
@NODE
@click.option("--fence", is_flag=True, help="Others lead at once, not only when its session is over.")
def kill(bootstrap: str, node: int, fence: bool) -> None:
    """End a broker as kill -9 does; its port and the data already written stay."""
    move(bootstrap, "kill", node=node, fence=fence)
    done(f"broker {node} is killed")


@_lever("restart", "Stop a broker and start it again.")
@NODE
@click.option("--kill", is_flag=True, help="End it as under kill -9.")
def restart(bootstrap: str, node: int, kill: bool) -> None:
    """Stop a broker and start it again."""
    move(bootstrap, "restart", node=node, kill=kill)
    done(f"broker {node} runs again")


@_lever("fence", "Have the controller take a broker for dead.")
@NODE
def fence(bootstrap: str, node: int) -> None:
    """Make the controller consider a broker dead. If the broker is alive, it registers again."""
    move(bootstrap, "fence", node=node)
    done(f"broker {node} is fenced")


@_lever("pause", "Have a broker stand still, as under SIGSTOP.")
@NODE
def pause(bootstrap: str, node: int) -> None:
    """Freeze a broker as SIGSTOP does: its connections stay open, and nothing is answered."""
    move(bootstrap, "pause", node=node)
    done(f"broker {node} stands still; resume lets it go on")


@_lever("resume", "Have a broker go on after pause.")
@NODE
def resume(bootstrap: str, node: int) -> None:
    """Let a broker continue after pause."""
    move(bootstrap, "resume", node=node)
    done(f"broker {node} goes on")


@_lever("cut", "Cut a broker off, from others or from clients.")
@NODE
@click.argument("other", metavar="[BROKER]", type=click.IntRange(1), required=False)
@click.option(
    "--from", "ends", type=click.Choice(["clients", "controller"]), help="Cut it off from these alone."
)
def cut(bootstrap: str, node: int, other: int | None, ends: str | None) -> None:
    """Cut the network between two brokers, around one broker, or between one broker and clients.

    \b
    Examples:
      penstock cluster cut 1 2
      penstock cluster cut 1
      penstock cluster cut 1 --from clients
      penstock cluster heal
    """
    if ends is not None and other is not None:
        raise click.UsageError("name another broker or --from, not both")
    if other == node:
        raise click.UsageError(f"broker {node} has no link to itself: name two brokers, or one")
    if ends is not None:
        move(bootstrap, f"cut_from_{ends}", node=node)
    elif other is not None:
        move(bootstrap, "cut_link", one=node, other=other)
    else:
        move(bootstrap, "cut_off", node=node)
    far = f"broker {other}" if other is not None else ends if ends is not None else "all others"
    done(f"nothing passes between broker {node} and {far}; heal ends it")


@_lever("slow", "Slow down the link between two brokers.")
@NODE
@click.argument("other", metavar="BROKER", type=click.IntRange(1))
@click.argument("delay", metavar="DURATION")
def slow(bootstrap: str, node: int, other: int, delay: str) -> None:
    """Delay all traffic between two brokers by a duration such as 200ms."""
    move(bootstrap, "slow", one=node, other=other, ms=parse_duration(delay, "DURATION"))
    done(f"all between broker {node} and broker {other} takes {delay} longer; heal ends it")


@_lever("heal", "Let everything pass again, without delay.")
@click.argument("node", metavar="[BROKER]", type=click.IntRange(1), required=False)
def heal(bootstrap: str, node: int | None) -> None:
    """Undo cut and slow, for the links of one broker or for all."""
    move(bootstrap, "heal", node=node)
    done("everything passes again" if node is None else f"everything passes to and from broker {node} again")


@_lever("freeze", "Stop a broker from following leaders.")
@NODE
def freeze(bootstrap: str, node: int) -> None:
    """Stop a broker from replicating from leaders, so that it falls behind."""
    move(bootstrap, "freeze_follower", node=node)
    done(f"broker {node} follows no leader; thaw ends it")


@_lever("thaw", "Have a broker follow its leaders again.")
@NODE
def thaw(bootstrap: str, node: int) -> None:
    """Let a broker replicate from leaders again, after freeze or shrink-isr."""
    move(bootstrap, "thaw_follower", node=node)
    done(f"broker {node} follows its leaders")


@_lever("shrink-isr", "Remove a follower from the in-sync replicas.")
@TOPIC
@PARTITION
@NODE
def shrink_isr(bootstrap: str, topic: str, partition: int, node: int) -> None:
    """Remove a follower from the in-sync replicas of a partition, and freeze it."""
    move(bootstrap, "shrink_isr", topic=topic, partition=partition, node=node)
    done(f"broker {node} is not in sync with {topic}-{partition}; thaw ends it")


@_lever("move-leader", "Have another broker lead a partition.")
@TOPIC
@PARTITION
@click.option("--to", "node", metavar="BROKER", type=click.IntRange(1), help="This one; otherwise the next.")
def move_leader(bootstrap: str, topic: str, partition: int, node: int | None) -> None:
    """Make another in-sync replica the leader of a partition, and print that broker's id."""
    leader = move(bootstrap, "move_leader", topic=topic, partition=partition, node=node)
    done(f"broker {leader} leads {topic}-{partition}")


@_lever("elect", "Elect the preferred leader of a partition.")
@TOPIC
@PARTITION
@click.option("--unclean", is_flag=True, help="Any replica, with the loss that it brings.")
def elect(bootstrap: str, topic: str, partition: int, unclean: bool) -> None:
    """Elect the preferred leader of a partition, or with --unclean any leader if the partition has none."""
    move(bootstrap, "elect", topic=topic, partition=partition, unclean=unclean)
    done(f"elected a leader of {topic}-{partition}")


@_lever("move-coordinator", "Have another broker coordinate a group.")
@click.option("--group", help="The coordinator of this group.")
@click.option("--transactional-id", help="The coordinator of this transactional id.")
@click.option("--to", "node", metavar="BROKER", type=click.IntRange(1), help="This one; otherwise the next.")
def move_coordinator(
    bootstrap: str, group: str | None, transactional_id: str | None, node: int | None
) -> None:
    """Make another broker the coordinator of a group or transactional id, and print its id."""
    if (group is None) == (transactional_id is None):
        raise click.UsageError("name either --group or --transactional-id")
    moved = move(bootstrap, "move_coordinator", group=group, transactional_id=transactional_id, node=node)
    done(f"broker {moved} coordinates {group if group is not None else transactional_id}")


@_lever("advance", "Put the clock of all brokers forward.")
@click.argument("duration", metavar="DURATION")
def advance(bootstrap: str, duration: str) -> None:
    """Move the clock of all brokers forward by a duration such as 90s or 1h30m; due timeouts fire."""
    move(bootstrap, "advance", ms=parse_duration(duration, "DURATION"))
    done(f"the clock of all brokers is {duration} further on")


@_lever("clock", "Let time stand still, or go on.")
@click.argument("what", metavar="stop|start", type=click.Choice(["stop", "start"]))
def clock(bootstrap: str, what: str) -> None:
    """Stop the clock of all brokers, or start it again from where it stopped."""
    move(bootstrap, f"{what}_clock")
    done("the clock of all brokers stands still" if what == "stop" else "the clock of all brokers goes on")
