"""``penstock mirror``: copies topics from one Kafka, of any release, to another."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import waiting
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import note, put
from penstock.cli.settings import BOOTSTRAP, meaning, of_source
from penstock.errors import ConfigError, NetworkError, PenstockError, RequestTimeoutError

if TYPE_CHECKING:
    from penstock.tables.topic_mirror import TopicMirror

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNTS = {
    "same": "the same",
    "only_source": "gone from the target",
    "only_target": "gone from the source",
    "not_in_map": "copied before there was a map",
    "different": "different",
}
"""A dict from the names of counts in a `PartitionCheck` to the words for them in the output of
``--check``.
"""

LOOK_EVERY_S = 1.0
"""The seconds between lookups of a followed source's end offsets, and between progress lines in JSON."""

ROUND_MS = 200.0
"""The milliseconds for which one pass over all copied topics waits for records.

After a pass without records, a request is sent to the target to check that it still answers.
"""


@click.command("mirror", short_help="Copy topics from one Kafka into another.")
@click.option("--from", "source", metavar="HOST:PORT", help="The Kafka to copy from.")
@click.option("--from-config", metavar="FILE", help="Client settings for it, as --config takes them.")
@click.option("--from-profile", metavar="NAME", help="Client settings for it, as --profile takes them.")
@click.option(
    "--from-0.7",
    "old_source",
    metavar="HOST:PORT",
    help="A Kafka 0.7 instead; several as 0:host:port,1:host:port, or zookeeper://host:port/chroot.",
)
@click.option("-t", "--topic", "topics", required=True, multiple=True, help="Topic to copy; may be repeated.")
@bootstrap_option()
@click.option("--target-topic", metavar="TOPIC", help="Its name in the Kafka at -b.  [default: the same]")
@click.option("--name", help="The group at -b that has the positions; by default it names source and topic.")
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_committed",
    show_default=True,
    help="Whether to copy what is not committed, or aborted.",
)
@click.option(
    "-z",
    "--compression",
    "codec",
    type=click.Choice(CODECS),
    help="Compress with this codec.  [default: as in the source; none, from Kafka 0.7]",
)
@click.option(
    "-g",
    "--groups",
    metavar="PATTERN",
    multiple=True,
    help="Move the offsets of these groups along: a name, or a pattern such as 'orders-*'; may be repeated.",
)
@click.option(
    "--keep-offsets",
    is_flag=True,
    help="Into a Penstock broker: messages have the offsets that they have in the source.",
)
@click.option("--check", is_flag=True, help="Copy nothing; compare what is copied with the source.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")
@json_option()
@property_option()
def command(
    source: str | None,
    from_config: str | None,
    from_profile: str | None,
    old_source: str | None,
    topics: tuple[str, ...],
    bootstrap: str,
    target_topic: str | None,
    name: str | None,
    isolation: str,
    codec: str | None,
    groups: tuple[str, ...],
    keep_offsets: bool,
    check: bool,
    follow: bool,
    quiet: bool,
    as_json: bool,
    properties: tuple[str, ...],
) -> None:
    """Copy topics from one Kafka into the Kafka at -b, with keys, headers, timestamps and partitions.

    A copy that was interrupted continues where it was, and every message is copied once: positions are
    committed at -b, in one transaction with the messages. From Kafka 0.7, the headers kafka-0.7-offset and
    kafka-0.7-place of each record say where the message was.

    With --groups the offsets of groups are copied, too: each to the message that the group will read next,
    as soon as that is copied. A group that consumes at -b is not changed.

    \b
    Examples:
      penstock mirror --from old:9092 -t events -b new:9092
      penstock mirror --from-profile prod -t events -t users -b localhost:9092 -f
      penstock mirror --from old:9092 -t events -b new:9092 -f --groups 'bill-*'
      penstock mirror --from old:9092 -t events -b new:9092 --check
      penstock mirror --from-0.7 old:9092 -t events -b new:9092
      penstock mirror --from-0.7 zookeeper://zk:2181/kafka -t events \\
        -b new:9092 -z zstd --follow
    """
    if quiet:
        waiting.be_quiet()
    if target_topic is not None and len(topics) > 1:
        raise ConfigError("--target-topic names one topic, and several are to be copied")
    if name is not None and len(topics) > 1:
        raise ConfigError("--name names one copy, and several topics are to be copied")
    config = client_settings(properties)
    if old_source is not None:
        if source or from_config or from_profile or name or len(topics) > 1:
            raise ConfigError("--from-0.7 takes one topic, and none of --from, --from-config, --name")
        if groups or keep_offsets or check:
            raise ConfigError("--from-0.7 takes none of --groups, --keep-offsets and --check")
        _copy_07(
            topics[0], old_source, bootstrap, target_topic, codec or "none", config, follow, quiet, as_json
        )
        return
    source_config = of_source(from_config, from_profile)
    for each in [each for each in source_config if meaning(each) == meaning(BOOTSTRAP)]:
        source = source or source_config[each]
        del source_config[each]
    if source is None:
        raise ConfigError("say where to copy from: --from HOST:PORT, --from-profile NAME or --from-0.7")
    if check:
        if follow or groups or codec:
            raise ConfigError("--check copies nothing: leave out -f, -g and -z")
        options = {"target_topic": target_topic, "name": name, "isolation": isolation}
        ends = {"source_config": source_config, "config": config, "keep_offsets": keep_offsets}
        _check(topics, source, bootstrap, {**options, **ends}, as_json)
        return
    from penstock.tables.topic_mirror import TopicMirror

    with ExitStack() as stack:
        mirrors = []
        for topic in topics:
            waiting.idle(f"looking at {topic}")
            mirror = TopicMirror(
                topic,
                source,
                bootstrap,
                target_topic=target_topic,
                name=name,
                compression=codec,
                isolation=isolation,
                groups=groups,
                keep_offsets=keep_offsets,
                source_config=source_config,
                config=config,
            )
            mirrors.append(stack.enter_context(mirror))
        waiting.idle(lambda: f"copying {', '.join(topics)}: {_far(mirrors)}")
        for _ in _rounds(mirrors, follow=follow):
            if as_json:
                waiting.step_aside()
                _put(mirrors, as_json)
                sys.stdout.flush()
        waiting.step_aside()
        if not (follow and as_json):
            _put(mirrors, as_json)


def _rounds(mirrors: Sequence[TopicMirror], *, follow: bool) -> Iterator[None]:
    """Copy to the end of the sources; with `follow`, copy without end."""
    looked_at = time.monotonic()
    has_come = False
    pace = _Pace()
    while follow or not all(mirror.is_at_end for mirror in mirrors):
        copied = 0
        for mirror in mirrors:
            if follow or not mirror.is_at_end:
                copied += mirror.step(ROUND_MS / len(mirrors))
        has_come = has_come or copied > 0
        if pace.is_due():
            with contextlib.suppress(NetworkError, RequestTimeoutError):
                for mirror in mirrors:
                    has_come = mirror.move_groups() > 0 or has_come
            pace.note()
        if not follow:
            continue
        # A Kafka that is away is waited for, as by consume: what is asked of it shows that it is (`waiting`).
        with contextlib.suppress(NetworkError, RequestTimeoutError):
            if not copied:
                mirrors[0].look_at_target()
            if time.monotonic() - looked_at >= LOOK_EVERY_S:
                looked_at = time.monotonic()
                for mirror in mirrors:
                    mirror.look_at_end()
                if has_come:
                    yield
                has_come = False

    # What groups have committed meanwhile may lie behind the end that was looked at.
    for mirror in mirrors:
        mirror.move_groups()
        if mirror.waiting_offsets:
            mirror.look_at_end()
            while not mirror.is_at_end:
                mirror.step(ROUND_MS)
            mirror.move_groups()


class _Pace:
    """Decides when group offsets are moved: each second, or less often, to take at most 10 % of the time."""

    def __init__(self) -> None:
        self._due = self._begun = time.monotonic()

    def is_due(self) -> bool:
        self._begun = time.monotonic()
        return self._begun >= self._due

    def note(self) -> None:
        """Record that moving group offsets, which began when `is_due` returned True, has ended."""
        now = time.monotonic()
        self._due = now + max(LOOK_EVERY_S, 9 * (now - self._begun))


def _far(mirrors: Sequence[TopicMirror]) -> str:
    parts = [part for mirror in mirrors for part in mirror.progress()]
    left = sum(max(0, part.end - part.position) for part in parts)
    return f"{sum(part.copied for part in parts):,} messages, {left:,} offsets to go"


def _put(mirrors: Sequence[TopicMirror], as_json: bool) -> None:
    if not as_json:
        for mirror in mirrors:
            total = sum(part.copied for part in mirror.progress())
            put(f"copied {total:,} messages of {mirror.topic} to {mirror.target_topic}")
            if mirror.groups:
                moved = sum(part.moved for part in mirror.progress())
                put(f"moved {moved:,} offsets of {len(mirror.groups):,} groups: {', '.join(mirror.groups)}")
            if mirror.waiting_offsets:
                put(f"{mirror.waiting_offsets:,} offsets of groups wait for messages that are not copied yet")
        return
    rows = [
        {"topic": mirror.topic, "target": mirror.target_topic, **part._asdict()}
        for mirror in mirrors
        for part in mirror.progress()
    ]
    put_rows("mirror", rows, as_json)


def _check(
    topics: Sequence[str],
    source: str,
    bootstrap: str,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Compare copies with their sources, and raise if they differ; `options` are those of `check_copy`."""
    from penstock.tables.mirroring.record_check import check_copy

    different = 0
    rows: list[dict[str, object]] = []
    for topic in topics:
        waiting.idle(f"comparing {topic}")
        found = check_copy(topic, source, bootstrap, **options)
        waiting.step_aside()
        for each in found:
            different += each.different
            counts = {count: getattr(each, count) for count in COUNTS}
            rows.append({"topic": topic, "partition": each.partition, **counts})
            if not as_json:
                said = [
                    f"{count:,} {COUNTS[kind]}" for kind, count in counts.items() if count or kind == "same"
                ]
                put(f"{topic}-{each.partition}: {', '.join(said)}")
                for one in each.differences:
                    where = (
                        f"offset {_or_none(one.source_offset)}, in the target {_or_none(one.target_offset)}"
                    )
                    put(f"  {where}: {one.what}")
    if as_json:
        put_rows("mirror check", rows, as_json)
    if different:
        raise PenstockError(f"{different:,} records differ")


def _or_none(offset: int | None) -> str:
    return "none" if offset is None else str(offset)


def _copy_07(
    topic: str,
    source: str,
    bootstrap: str,
    target_topic: str | None,
    codec: str,
    config: dict[str, str],
    follow: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from penstock.tables.mirror import Mirror, MirrorProgress

    latest: dict[int, MirrorProgress] = {}
    with Mirror(
        topic, source, bootstrap, target_topic=target_topic, compression=codec, config=config
    ) as mirror:
        for progress in mirror.run(follow=follow):
            latest[progress.partition] = progress
            if not quiet:
                waiting.step_aside()
                note(
                    f"partition {progress.partition}: {progress.copied:,} messages, "
                    f"byte {progress.offset:,} of {progress.end:,}"
                )
    if not as_json:
        total = sum(progress.copied for progress in latest.values())
        put(f"copied {total:,} messages of {topic} to {mirror.target_topic}")
        return
    rows = [
        {
            "topic": topic,
            "partition": one.partition,
            "target": mirror.target_topic,
            "copied": one.copied,
            "position": one.offset,
            "end": one.end,
            "moved": 0,
        }
        for one in latest.values()
    ]
    put_rows("mirror", rows, as_json)
