"""``penstock directory``: describes and converts data directories that are not in use by a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.outcome import put

if TYPE_CHECKING:
    from penstock.broker.metadata.directory_levels import DirectoryState

TOPICS_NAMED = 5
"""The most topics to list in the warning that Apache Kafka 4.x does not start with some topics."""


@click.group("directory", short_help="Data directories of brokers that are stopped.")
def command() -> None:
    """Describe a data directory, or convert it for another release of Apache Kafka.

    Its broker has to be stopped. Several log.dirs are named with commas between them.

    \b
    Examples:
      penstock directory describe data
      penstock directory set-level data 3.9
      penstock directory set-level data,/mnt/data2 3.9
    """


@command.command("describe", short_help="Which releases of Apache Kafka start on a directory.")
@click.argument("path", metavar="DIR")
def describe_directory(path: str) -> None:
    """Show what software wrote a directory, its feature levels, and which releases of Kafka can use it."""
    from penstock.broker.metadata.directory_levels import describe

    _print(describe(path), path)


@command.command("set-level", short_help="Make a directory one for another release.")
@click.argument("path", metavar="DIR")
@click.argument("release")
def set_directory_level(path: str, release: str) -> None:
    """Set the metadata level of a directory to RELEASE, such as 3.9 or 4.3.

    A lower level drops features that the release does not have, which Apache Kafka itself cannot do.
    For 4.0 and later, a topic's segment.bytes below 1048576 is raised to that, since Apache Kafka would
    otherwise fail to start.
    """
    from penstock.broker.metadata.directory_levels import set_level

    _print(set_level(path, release), path)


def _print(state: DirectoryState, path: str) -> None:
    put(
        f"cluster {state.cluster_id}, node {state.node_id}, directory {state.directory_id or 'without an id'}"
    )
    put(", ".join(f"{name} {level}" for name, level in sorted(state.features.items())) or "no features")
    put(f"{len(state.topics)} topics; stopped {'in order' if state.was_clean else 'in disorder'}")
    put(f"Apache Kafka that starts on it: {', '.join(state.releases) or 'none'}")
    if state.small_segments:
        more = len(state.small_segments) - TOPICS_NAMED
        put(
            "Apache Kafka 4.x does not start on it: segment.bytes is below 1048576 in "
            f"{', '.join(state.small_segments[:TOPICS_NAMED])}{f' and {more} more topics' * (more > 0)}; "
            f"to raise it: penstock directory set-level {path} 4.0"
        )
