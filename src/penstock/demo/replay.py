"""Creates the demo's topics, and replays the data into them, resuming an earlier replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from penstock.client import Admin, Consumer
from penstock.cloudevents import encode_events
from penstock.demo.events import attributes
from penstock.demo.plan import FLIGHTS_PARTITIONS, WEATHER_PARTITIONS, ReplayPlan
from penstock.errors import ConfigError, KafkaError, PenstockError
from penstock.model import LATEST, TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.tables import scan_topic, write_topic

TOPICS = {
    "flights": FLIGHTS_PARTITIONS,
    "weather": WEATHER_PARTITIONS,
    "delays": 3,
    "dead-letters": 1,
    "replay-marks": 1,
}
"""A dict from the short names of the demo's topics to their numbers of partitions."""

TOPIC_CONFIG = {"retention.ms": "-1"}
"""The settings of the topics: no deletion by age, since the events of 2013 would be deleted at once."""

PRODUCER_CONFIG = {"request.timeout.ms": "15000", "delivery.timeout.ms": "20000"}
"""Short timeouts: if the broker's disk is full, the demo soon ends with an error. It can be resumed later."""

MARK_TYPE = "penstock.demo.replay-complete"
MARK_SOURCE = "/penstock/demo/replay"


class Bar(Protocol):
    """The interface of a display of the replay's progress."""

    def start_at(self, count: int) -> None: ...

    def advance(self, count: int) -> None: ...


class DemoTopics:
    """The demo's topics on one cluster. `names` maps short names of topics to full names."""

    def __init__(self, bootstrap_server: str, names: Mapping[str, str]) -> None:
        self.bootstrap_server = bootstrap_server
        self.names = names

    def refuse_filled(self) -> None:
        """Raise ConfigError if one of the topics has records, which another program must have written."""
        with Admin(bootstrap_servers=self.bootstrap_server) as admin:
            there = set(admin.list_topics()).intersection(self.names.values())
            for topic in admin.describe_topics(sorted(there)):
                tps = [TopicPartition(topic.name, partition.partition) for partition in topic.partitions]
                if any(end and end.offset for end in admin.list_offsets(dict.fromkeys(tps, LATEST)).values()):
                    raise ConfigError(
                        f"topic {topic.name!r} on {self.bootstrap_server} holds records that are not this "
                        "demo's: choose other names with --topic-prefix, or delete the topic"
                    )

    def create(self) -> None:
        """Create the topics that are missing.

        Raises:
            ConfigError: a topic exists with another number of partitions.
        """
        with Admin(bootstrap_servers=self.bootstrap_server) as admin:
            for short, partitions in TOPICS.items():
                name = self.names[short]
                try:
                    admin.create_topic(name, partitions, config=TOPIC_CONFIG)
                except KafkaError as error:
                    if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise
                (description,) = admin.describe_topics([name])
                if len(description.partitions) != partitions:
                    raise ConfigError(
                        f"topic {name!r} has {len(description.partitions)} partitions, the demo needs "
                        f"{partitions}: choose other names with --topic-prefix, or delete the topic"
                    )

    def ends(self, short: str) -> list[int]:
        """Return the end offset of each partition of a topic."""
        with Consumer(bootstrap_servers=self.bootstrap_server) as consumer:
            partitions = [TopicPartition(self.names[short], number) for number in range(TOPICS[short])]
            ends = consumer.end_offsets(partitions)
            return [ends[partition] for partition in partitions]

    def count(self, short: str) -> int:
        """Count the committed records of a topic by reading them: offsets also count transaction markers."""
        batches = scan_topic(
            self.names[short],
            bootstrap_servers=self.bootstrap_server,
            columns=["offset"],
            end="latest",
            isolation="read_committed",
            progress=False,
        )
        return sum(batch.num_rows for batch in batches)

    def write(self, plan: ReplayPlan, bar: Bar) -> None:
        """Write the records of `plan` that its topic does not have yet.

        Raises:
            PenstockError: a partition has another number of records than planned: another program has written
                to the topic, or it was deleted.
        """
        written = self.ends(plan.topic)
        if any(have > planned for have, planned in zip(written, plan.lengths, strict=True)):
            raise PenstockError(self._foreign(plan))
        bar.start_at(sum(written))
        if written == plan.lengths:
            return

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in plan.missing(written):
                yield batch
                bar.advance(batch.num_rows)

        self._write(batches(), self.names[plan.topic])
        if self.ends(plan.topic) != plan.lengths:
            raise PenstockError(self._foreign(plan))

    def write_mark(self, moment: datetime) -> None:
        """Write the event that marks the replay as complete, unless the topic has it already."""
        if any(self.ends("replay-marks")):
            return
        event = attributes(
            ids=pa.array(["complete"]),
            source=MARK_SOURCE,
            kind=MARK_TYPE,
            subject=pa.array([self.names["flights"]]),
            time=pa.array([moment], pa.timestamp("s", tz="UTC")),
            data=pa.array(["{}"]),
            key=pa.array([self.names["flights"]]),
        )
        mark = encode_events(event, mode="binary")
        self._write([mark], self.names["replay-marks"])

    def _write(self, batches: Iterable[pa.RecordBatch], name: str) -> None:
        write_topic(
            batches,
            name,
            bootstrap_servers=self.bootstrap_server,
            compression="lz4",
            config=PRODUCER_CONFIG,
            progress=False,  # the screen of the demo shows it
        )

    def _foreign(self, plan: ReplayPlan) -> str:
        return (
            f"topic {self.names[plan.topic]!r} does not hold what this demo wrote: others write to it, "
            "or it was deleted; delete the output directory and the topics, and start again"
        )
