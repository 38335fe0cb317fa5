"""The rules by which 0.7's brokers, producers and consumers coordinate through ZooKeeper, without I/O.

Every member computes the assignment from the nodes that it has read (`assign`), with the same result and
without messages between members. Paths and data are those of "Writing a Driver for Kafka"; where it leaves
something open, the behaviour is that of release 0.7.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.common.java_hash import string_hash
from penstock.errors import ConfigError, DecodeError
from penstock.v07.driver import BrokerAddress

PARTITIONS_MAX = STREAMS_MAX = 1 << 16
"""The maximum number of partitions of a topic on one broker, and of streams of a member, that is accepted:
other programs write these numbers into ZooKeeper, and every member computes with them."""

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"


class BrokerPartition(NamedTuple):
    """One partition on one broker: a separate log, unrelated to those of other brokers."""

    broker_id: int
    partition: int

    def __str__(self) -> str:
        return f"{self.broker_id}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> BrokerPartition:
        """Parse a text of the form ``broker-partition``, such as ``2-0``.

        Raises:
            DecodeError: the text has another form.
        """
        broker, dash, partition = text.partition("-")
        if not (dash and _is_number(broker) and _is_number(partition)):
            raise DecodeError(f"{text!r} is not broker-partition")
        return cls(int(broker), int(partition))


# --- paths -------------------------------------------------------------------------------------------------


def broker_path(broker_id: int) -> str:
    return f"{BROKERS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def ids_path(group: str) -> str:
    return f"/consumers/{group}/ids"


def owner_path(group: str, topic: str, partition: BrokerPartition) -> str:
    return f"/consumers/{group}/owners/{topic}/{partition}"


def offset_path(group: str, topic: str, partition: BrokerPartition) -> str:
    return f"/consumers/{group}/offsets/{topic}/{partition}"


# --- what nodes hold ---------------------------------------------------------------------------------------


def broker_data(creator: str, host: str, port: int) -> str:
    """Return a broker's registration: ``creator:host:port``.

    Raises:
        ConfigError: the host has a colon in it, such as an IPv6 address, which the format cannot express.
    """
    if ":" in host:
        raise ConfigError(f"Kafka 0.7 cannot name the host {host!r} in ZooKeeper; set hostname to a name")
    return f"{creator}:{host}:{port}"


def parse_broker(broker_id: int, data: bytes) -> BrokerAddress:
    """Return the address in a broker's registration, ``creator:host:port``.

    "Always split on ':' and extract the host that will be the second element" ("Writing a Driver for Kafka").

    Raises:
        DecodeError: the data are not ``creator:host:port``.
    """
    _, host, port, *_ = [*data.decode("utf-8", "replace").split(":"), "", ""]
    if not host or not _is_number(port) or int(port) > 0xFFFF:
        raise DecodeError(f"broker {broker_id} is registered as {data!r}, not as creator:host:port")
    return BrokerAddress(broker_id, host, int(port))


def parse_count(data: bytes) -> int:
    """Return the number of partitions in the data of a ZooKeeper node.

    Raises:
        DecodeError: the data are not a whole number, or more than a broker can have.
    """
    count = parse_offset(data)
    if count > PARTITIONS_MAX:
        raise DecodeError(f"{count} partitions: the limit is {PARTITIONS_MAX}")
    return count


def parse_offset(data: bytes) -> int:
    """Return the offset in the data of a ZooKeeper node.

    Raises:
        DecodeError: the data are not a whole number of 64 bits.
    """
    text = data.decode("utf-8", "replace").strip()
    if not _is_number(text) or int(text) >= 1 << 63:
        raise DecodeError(f"{data[:40]!r} is not a whole number of 64 bits")
    return int(text)


def _is_number(text: str) -> bool:
    """Return True if a text consists of ASCII digits, not more than a 64-bit number has."""
    return text.isascii() and text.isdecimal() and len(text) < 20


class StreamSubscription(NamedTuple):
    """A member's subscription: streams per topic, or for all topics that match or do not match a pattern."""

    streams: Mapping[str, int]
    pattern: str | None = None
    is_blacklist: bool = False
    pattern_streams: int = 1

    def of(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the number of streams for each topic. Topics given by name need not exist yet."""
        if self.pattern is None:
            return dict(self.streams)
        matches = re.compile(self.pattern).fullmatch
        return {
            topic: self.pattern_streams for topic in topics if (matches(topic) is None) == self.is_blacklist
        }

    def data(self) -> bytes:
        """Return the subscription as the data of the member's ZooKeeper node."""
        if self.pattern is not None:
            sign = "!" if self.is_blacklist else "*"
            return f"{sign}{self.pattern_streams}{sign}{self.pattern}".encode()
        entries = ",".join(f"{json.dumps(topic)}: {count}" for topic, count in self.streams.items())
        return f"{{ {entries} }}".encode()


def parse_pattern(text: str) -> str:
    """Return a topic filter of 0.7 as a regular expression: commas separate alternatives.

    Blanks and enclosing quotes are removed.

    Raises:
        ConfigError: the filter is not a valid regular expression.
    """
    pattern = re.sub(r"\s", "", text.strip().strip("\"'")).replace(",", "|")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{text!r} is no regular expression: {error}") from None
    return pattern


def parse_subscription(data: bytes) -> StreamSubscription:
    """Return the subscription in the data of a member's ZooKeeper node.

    Raises:
        DecodeError: the data have none of the three forms; the member is then ignored.
    """
    text = data.decode("utf-8", "replace")
    match = re.fullmatch(r"([*!])(\d+)\1(.+)", text, re.DOTALL)
    try:
        if match is not None:
            pattern, streams = parse_pattern(match[3]), max(int(match[2]), 1)
            if streams <= STREAMS_MAX:
                return StreamSubscription({}, pattern, match[1] == "!", streams)
        else:
            wanted = json.loads(text)
            if isinstance(wanted, dict) and all(
                type(count) is int and 0 < count <= STREAMS_MAX for count in wanted.values()
            ):
                return StreamSubscription(wanted)
    except (ValueError, RecursionError):
        pass
    raise DecodeError(
        f"{text[:200]!r} is no subscription: a JSON object of topic to streams, or *n*regex, or !n!regex"
    )


# --- who owns what -----------------------------------------------------------------------------------------


class Snapshot(NamedTuple):
    """The data from which a member computes the assignment, as read from ZooKeeper.

    `members` has the subscription of each member; `topics` the number of partitions for each topic and broker
    id.
    """

    members: Mapping[str, StreamSubscription]
    topics: Mapping[str, Mapping[int, int]]


def threads(member: str, streams: int) -> list[str]:
    """Return the names of a member's streams, which are the contents of the owner nodes in ZooKeeper."""
    return [f"{member}-{number}" for number in range(streams)]


def split(partitions: Iterable[str], owners: Iterable[str]) -> dict[str, list[str]]:
    """Assign consecutive chunks of the sorted partitions to the sorted owners.

    If the division has a remainder, the first owners get one partition more. Both are sorted as text, so that
    ``10-0`` comes before ``2-0``. Every owner is in the result.
    """
    ordered, chunks = sorted(partitions), sorted(owners)
    if not chunks:
        return {}
    each, more = divmod(len(ordered), len(chunks))
    found: dict[str, list[str]] = {}
    start = 0
    for partition, owner in enumerate(chunks):
        size = each + (partition < more)
        found[owner] = ordered[start : start + size]
        start += size
    return found


def assign(snapshot: Snapshot, member: str) -> dict[tuple[str, BrokerPartition], str]:
    """Compute the assignment of `member`: (topic, broker partition) -> name of the stream that reads it."""
    if member not in snapshot.members:
        return {}
    wanted = {name: subscription.of(snapshot.topics) for name, subscription in snapshot.members.items()}
    own: dict[tuple[str, BrokerPartition], str] = {}
    for topic in wanted[member]:
        owners = [
            thread for name, streams in wanted.items() for thread in threads(name, streams.get(topic, 0))
        ]
        counts = snapshot.topics.get(topic, {})
        partitions = [f"{broker}-{number}" for broker, count in counts.items() for number in range(count)]
        chunks = split(partitions, owners)
        for thread in threads(member, wanted[member][topic]):
            own.update({(topic, BrokerPartition.parse(partition)): thread for partition in chunks[thread]})
    return own


def destinations(counts: Mapping[int, int], live_brokers: Iterable[int]) -> list[BrokerPartition]:
    """Return the partitions to which a message of a topic may be sent; `counts` are those of each broker.

    A live broker that does not list the topic is included with partition 0: the message creates the topic
    there, and the broker then registers its number of partitions.
    """
    live = set(live_brokers)
    known = {broker: count for broker, count in counts.items() if broker in live}
    known.update(dict.fromkeys(live - known.keys(), 1))
    return [
        BrokerPartition(broker, number) for broker, count in sorted(known.items()) for number in range(count)
    ]


def choose(partitions: Sequence[BrokerPartition], key: str) -> BrokerPartition:
    """Return the partition for a key, from Java's hash code of its text, as in Kafka 0.7's producer."""
    return partitions[abs(string_hash(key)) % len(partitions)]
