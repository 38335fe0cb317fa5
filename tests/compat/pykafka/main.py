"""Exercise a broker with pykafka: ``python main.py SERVERS records|records-of-0.8``.

The program tests every codec, offsets, commits and, in mode ``records``, a managed group. It prints a line
``ok PART`` for each part that succeeded.
"""

import itertools
import os
import sys
import warnings

warnings.simplefilter("ignore")

from pykafka import KafkaClient  # noqa: E402
from pykafka.common import CompressionType, OffsetType  # noqa: E402

ROWS = [(b"key", b"value"), (None, b"no key"), (b"tombstone", None)]
ROWS += [(b"k%d" % n, b"v%d" % n * 20) for n in range(200)]
FROM_THE_START = {"auto_offset_reset": OffsetType.EARLIEST, "consumer_timeout_ms": 30_000}


def ok(part):
    print("ok", part, flush=True)


def read(consumer, count):
    found = list(itertools.islice(consumer, count))
    assert len(found) == count, f"only {len(found)} of {count}"
    return found


def every_codec(client):
    # Before magic 1, lz4 frames had a wrong checksum that pykafka does not write.
    for codec in ("NONE", "GZIP", "SNAPPY"):
        topic = client.topics[f"pykafka-{os.getpid()}-{codec}".encode()]
        with topic.get_producer(compression=getattr(CompressionType, codec), linger_ms=50) as producer:
            for key, value in ROWS:
                producer.produce(value, partition_key=key)
        consumer = topic.get_simple_consumer(reset_offset_on_start=True, **FROM_THE_START)
        found = read(consumer, len(ROWS))
        consumer.stop()
        assert [(each.partition_key, each.value) for each in found] == ROWS
        assert [each.offset for each in found] == list(range(len(ROWS)))
        ok(codec)


def commits(client):
    topic = client.topics[f"pykafka-{os.getpid()}-GZIP".encode()]
    assert topic.earliest_available_offsets()[0].offset == [0]
    assert topic.latest_available_offsets()[0].offset == [len(ROWS)]
    group = f"pykafka-{os.getpid()}".encode()
    for first in (0, 50):
        consumer = topic.get_simple_consumer(consumer_group=group, **FROM_THE_START)
        assert read(consumer, 50)[0].offset == first
        consumer.commit_offsets()
        consumer.stop()
    ok("commits")


def managed_group(client):
    topic = client.topics[f"pykafka-{os.getpid()}-SNAPPY".encode()]
    group = f"pykafka-managed-{os.getpid()}".encode()
    for first in (0, 50):
        consumer = topic.get_balanced_consumer(consumer_group=group, managed=True, **FROM_THE_START)
        assert read(consumer, 50)[0].offset == first
        consumer.commit_offsets()
        consumer.stop()
    assert group in client.cluster.get_managed_group_descriptions()
    ok("managed group")


if __name__ == "__main__":
    _, servers, what = sys.argv
    old = what == "records-of-0.8"
    client = KafkaClient(servers, broker_version="0.8.2" if old else "0.9.0")
    every_codec(client)
    commits(client)
    if not old:
        managed_group(client)
