"""The partitions, offsets and messages of one Kafka 0.7 broker, for planning and fetching.

Offsets of Kafka 0.7 are byte positions, so a range can only end between two messages: at offsets that the
broker returns. The module `options` refuses options that would divide ranges at other positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, KafkaError
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.spark.source.options import ReadOptions, Selection
from penstock.spark.source.planning import DATA_LOSS_ADVICE, DataLossError
from penstock.tables.topics07 import Range07, Topics07, resolve
from penstock.v07.wire import Error

if TYPE_CHECKING:
    import pyarrow as pa


class Brokers07:
    """A connection to a Kafka 0.7 broker for metadata requests, opened by the first request."""

    def __init__(self, bootstrap_servers: str) -> None:
        if len(resolve(bootstrap_servers)) > 1:
            raise ConfigError(
                "the source reads one Kafka 0.7 broker: read each with a query of its own, and union them"
            )
        self._topics = Topics07(bootstrap_servers)

    def close(self) -> None:
        self._topics.close()

    def partition_counts(self, selection: Selection) -> dict[str, int]:
        """Return a dict from topic to its number of partitions, or the number that a missing topic would get.

        Raises:
            KafkaError: a topic name is illegal.
            NetworkError: the broker does not answer.
        """
        names = {*selection.topics, *(tp.topic for tp in selection.partitions)}
        return {topic: len(self._topics.partitions(topic)) for topic in sorted(names)}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """Return no ids, because topics of Kafka 0.7 have none."""
        return {}

    def lookup(self, questions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the byte offset for EARLIEST, LATEST or a time: for a time, the start of a segment.

        A time is in milliseconds since 1970.

        Raises:
            NetworkError: the broker does not answer.
        """
        return {tp: self._offset(tp, question) for tp, question in questions.items()}

    def _offset(self, tp: TopicPartition, question: int) -> int:
        if question in (EARLIEST, LATEST):
            first, last = self._topics.bounds(*tp)
            return first if question == EARLIEST else last
        return self._topics.offset_before(*tp, question)


def fetch07(
    options: ReadOptions, columns: Sequence[str], spans: Sequence[OffsetRange]
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of the byte ranges `spans`, each range in order, as batches with `columns`.

    Requests are not retried: a broker that does not answer causes an error.

    Raises:
        DataLossError: bytes of a span are no longer in the log, and failOnDataLoss is on.
        PenstockError: the broker cannot be reached, the messages are damaged, or another failure.
    """
    with Topics07(options.bootstrap_servers) as topics:
        for span in spans:
            try:
                yield from topics.scan(Range07(*span), columns)
            except KafkaError as error:
                if error.code != Error.OFFSET_OUT_OF_RANGE:
                    raise
                if options.fail_on_data_loss:
                    raise DataLossError(f"{error}; {DATA_LOSS_ADVICE}") from None
                first, _ = topics.bounds(span.topic, span.partition)
                if span.start < first < span.end:
                    yield from topics.scan(Range07(span.topic, span.partition, first, span.end), columns)
