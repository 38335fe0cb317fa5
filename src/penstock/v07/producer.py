"""The producer of Kafka 0.7: finds brokers in ZooKeeper or in a list, and sends without acknowledgement."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, EncodeError, NetworkError
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.connection import Connection07
from penstock.v07.driver import BrokerAddress, parse_brokers
from penstock.v07.groups import zookeeper
from penstock.v07.groups.cluster import Cluster07
from penstock.v07.groups.coordination import BrokerPartition, choose, destinations
from penstock.v07.message_set import encode_set
from penstock.v07.wire import ANY_PARTITION, ProducePart

if TYPE_CHECKING:
    from kazoo.client import KazooClient

MESSAGE_BYTES_MAX = 1_000_000
"""The maximum message size in bytes (`max.message.size`): the producer refuses larger messages, which a
broker would drop silently."""

READ_RETRIES = 3
"""The number of times that the list of brokers is read again if ZooKeeper lists none: `zk.read.num.retries`
of Kafka 0.7."""


class Producer07:
    """Sends to topics of Kafka 0.7. `send` returns when the message set is sent; nothing is acknowledged.

    With `zookeeper` (``host:port,host:port/chroot``) each message set goes to one of the partitions of all
    live brokers: chosen by the hash of its key as in Java, or at random. A broker without the topic is
    included with partition 0, and a message creates the topic there. With `brokers` (``id:host:port,...``) a
    random broker is chosen, which chooses the partition itself; keys have no effect. The first connection to
    ZooKeeper may take `connection_timeout_ms`; 0 means `session_timeout_ms`.

    Raises:
        ConfigError: `zookeeper` and `brokers` are both given, or neither.
        NetworkError: no ZooKeeper answers.
    """

    def __init__(
        self,
        *,
        zookeeper: str | None = None,
        brokers: str | Sequence[str] | None = None,
        compression: str = "none",
        session_timeout_ms: int = 6_000,
        connection_timeout_ms: int = 0,
        digest: str | None = None,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        timeout_s: float = 30.0,
        dice: random.Random | None = None,
    ) -> None:
        if (zookeeper is None) == (brokers is None):
            raise ConfigError("a Kafka 0.7 producer needs either zookeeper or brokers")
        self._codec = CompressionCodec.from_name(compression)
        self._message_bytes_max = message_bytes_max
        self._timeout_s = timeout_s
        self._dice = dice or random.Random()
        self._connections: dict[BrokerAddress, Connection07] = {}
        self._fixed = parse_brokers(brokers) if brokers is not None else []
        self._client = None
        self._cluster: Cluster07 | None = None
        if zookeeper is not None:
            self._client = _connect(zookeeper, session_timeout_ms, connection_timeout_ms, digest)
            self._cluster = Cluster07(self._client)

    def __enter__(self) -> Producer07:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and end the ZooKeeper session."""
        for connection in self._connections.values():
            connection.close()
        if self._client is not None:
            zookeeper.disconnect(self._client)
            self._client = None

    def send(self, topic: str, payloads: Iterable[bytes], *, key: str | None = None) -> None:
        """Send payloads as one message set to one partition. Raises: as `send_many`."""
        self.send_many({(topic, key): list(payloads)})

    def send_many(self, groups: Mapping[tuple[str, str | None], Sequence[bytes]]) -> None:
        """Send message sets for several topics and keys, in one request for each broker.

        Raises:
            EncodeError: a payload is larger than brokers accept.
            NetworkError: there is no broker for a topic, or the connection broke, so that earlier messages
                may or may not have arrived.
        """
        by_broker: dict[BrokerAddress, list[ProducePart]] = {}
        for (topic, key), payloads in groups.items():
            messages = encode_set(self._checked(topic, payloads), codec=self._codec)
            address, partition = self._destination(topic, key)
            by_broker.setdefault(address, []).append(ProducePart(topic, partition, messages))
        for address, parts in by_broker.items():
            self._connection(address).produce(parts)

    def _checked(self, topic: str, payloads: Sequence[bytes]) -> Sequence[bytes]:
        for payload in payloads:
            if not isinstance(payload, (bytes, bytearray, memoryview)):
                raise EncodeError(f"a message of Kafka 0.7 is bytes, not {type(payload).__name__}")
            if len(payload) > self._message_bytes_max:
                raise EncodeError(
                    f"a message of {len(payload)} bytes for {topic}: brokers drop what is larger than "
                    f"max.message.size, {self._message_bytes_max}, without a word"
                )
        return payloads

    def _destination(self, topic: str, key: str | None) -> tuple[BrokerAddress, int]:
        if self._cluster is None:
            return self._dice.choice(self._fixed), ANY_PARTITION
        for _ in range(READ_RETRIES + 1):
            brokers = self._cluster.brokers()
            partitions = destinations(self._cluster.counts(topic), brokers)
            if partitions:
                partition: BrokerPartition = (
                    self._dice.choice(partitions) if key is None else choose(partitions, key)
                )
                return brokers[partition.broker_id], partition.partition
            self._cluster.forget()
        raise NetworkError(f"ZooKeeper lists no live Kafka 0.7 broker for topic {topic!r}: start one")

    def _connection(self, address: BrokerAddress) -> Connection07:
        connection = self._connections.get(address)
        if connection is None:
            connection = Connection07(address.host, address.port, timeout_s=self._timeout_s)
            self._connections[address] = connection
        return connection


def _connect(
    hosts: str, session_timeout_ms: int, connection_timeout_ms: int, digest: str | None
) -> KazooClient:
    """Connect to ZooKeeper.

    It is a separate function because in the class an argument hides the module `zookeeper`.
    """
    return zookeeper.connect(
        hosts,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=connection_timeout_ms,
        digest=digest,
    )
