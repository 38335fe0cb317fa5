"""``penstock mirror``: a topic of Kafka 0.7 copied into any newer Kafka."""

from __future__ import annotations

import click

from penstock.cli import waiting
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import note, put

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command("mirror")
@click.option(
    "--from-0.7",
    "source",
    metavar="HOST:PORT",
    required=True,
    help="The Kafka 0.7 broker; several as 0:host:port,1:host:port, or zookeeper://host:port/chroot.",
)
@click.option("-t", "--topic", required=True, help="The topic to copy.")
@bootstrap_option()
@click.option("--target-topic", metavar="TOPIC", help="Its name in the newer Kafka.  [default: the same]")
@click.option(
    "-z", "--compression", "codec", type=click.Choice(CODECS), default="none", help="Compression codec."
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")
@property_option()
def command(
    source: str,
    topic: str,
    bootstrap: str,
    target_topic: str | None,
    codec: str,
    follow: bool,
    quiet: bool,
    properties: tuple[str, ...],
) -> None:
    """Copy a topic of Kafka 0.7 into the newer Kafka at -b.

    Interrupted and started again it goes on where it was: every message is copied once and in order. The
    headers kafka-0.7-offset and kafka-0.7-place of each record say where the message was.

    \b
    Examples:
      penstock mirror --from-0.7 old:9092 -t events -b new:9092
      penstock mirror --from-0.7 zookeeper://zk:2181/kafka -t events \\
        -b new:9092 -z zstd --follow
    """
    from penstock.tables.mirror import Mirror

    if quiet:
        waiting.be_quiet()
    copied: dict[int, int] = {}
    with Mirror(
        topic,
        source,
        bootstrap,
        target_topic=target_topic,
        compression=codec,
        config=client_settings(properties),
    ) as mirror:
        for progress in mirror.run(follow=follow):
            copied[progress.partition] = progress.copied
            if not quiet:
                waiting.step_aside()
                note(
                    f"partition {progress.partition}: {progress.copied:,} messages, "
                    f"byte {progress.offset:,} of {progress.end:,}"
                )
    total = sum(copied.values())
    put(f"copied {total:,} messages of {topic} to {mirror.target_topic}")
