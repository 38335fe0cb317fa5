"""Penstock: Kafka for Python people, in one package.

A broker that starts inside a test, a client that returns topics as Arrow tables, the CloudEvents binding, and
a pipeline on Spark. Every name below is imported on first use, so that ``import penstock`` takes
almost no time and loads none of the optional libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names
from penstock.version import __version__ as __version__

if TYPE_CHECKING:
    from penstock.broker import Broker as Broker
    from penstock.broker import Cluster as Cluster
    from penstock.client import AcknowledgeType as AcknowledgeType
    from penstock.client import Admin as Admin
    from penstock.client import AsyncAdmin as AsyncAdmin
    from penstock.client import AsyncConsumer as AsyncConsumer
    from penstock.client import AsyncProducer as AsyncProducer
    from penstock.client import AsyncShareConsumer as AsyncShareConsumer
    from penstock.client import Consumer as Consumer
    from penstock.client import Producer as Producer
    from penstock.client import ShareConsumer as ShareConsumer
    from penstock.cloudevents import Event as Event
    from penstock.model import EARLIEST as EARLIEST
    from penstock.model import LATEST as LATEST
    from penstock.model import Record as Record
    from penstock.model import RecordMetadata as RecordMetadata
    from penstock.model import TopicPartition as TopicPartition
    from penstock.queries import capture_dataset as capture_dataset
    from penstock.queries import log_dataset as log_dataset
    from penstock.queries import scan_polars as scan_polars
    from penstock.queries import sql as sql
    from penstock.queries import topic_dataset as topic_dataset
    from penstock.tables import read_log as read_log
    from penstock.tables import read_topic as read_topic
    from penstock.tables import read_topic_async as read_topic_async
    from penstock.tables import scan_log as scan_log
    from penstock.tables import scan_topic as scan_topic
    from penstock.tables import scan_topic_async as scan_topic_async
    from penstock.tables import write_topic as write_topic
    from penstock.tables import write_topic_async as write_topic_async


_HOMES = {
    "AcknowledgeType": "client",
    "Admin": "client",
    "AsyncAdmin": "client",
    "AsyncConsumer": "client",
    "AsyncProducer": "client",
    "AsyncShareConsumer": "client",
    "Broker": "broker",
    "Cluster": "broker",
    "Consumer": "client",
    "EARLIEST": "model",
    "Event": "cloudevents",
    "LATEST": "model",
    "Producer": "client",
    "Record": "model",
    "RecordMetadata": "model",
    "ShareConsumer": "client",
    "TopicPartition": "model",
    "capture_dataset": "queries",
    "log_dataset": "queries",
    "read_log": "tables",
    "read_topic": "tables",
    "read_topic_async": "tables",
    "scan_log": "tables",
    "scan_polars": "queries",
    "scan_topic": "tables",
    "scan_topic_async": "tables",
    "sql": "queries",
    "topic_dataset": "queries",
    "write_topic": "tables",
    "write_topic_async": "tables",
}

__all__ = sorted([*_HOMES, "__version__"])

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
