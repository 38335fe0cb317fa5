"""Kafka topics in Spark: the data source `penstock`, a session that suits it, and exactly-once sinks.

Names are imported on first use: Spark's workers import this package, and should not pay for what they
do not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.spark.frames import from_cloudevents as from_cloudevents
    from penstock.spark.identity import by_event as by_event
    from penstock.spark.identity import by_headers as by_headers
    from penstock.spark.identity import by_key as by_key
    from penstock.spark.java import find_java as find_java
    from penstock.spark.pipeline import Progress as Progress
    from penstock.spark.pipeline import follow as follow
    from penstock.spark.pipeline import progress_of as progress_of
    from penstock.spark.pipeline import reason as reason
    from penstock.spark.planning import DataLossError as DataLossError
    from penstock.spark.records import to_cloudevents as to_cloudevents
    from penstock.spark.session import session as session
    from penstock.spark.source import PenstockDataSource as PenstockDataSource
    from penstock.spark.tables import ParquetTable as ParquetTable
    from penstock.spark.topics import TopicSink as TopicSink

_HOMES = {
    "DataLossError": "planning",
    "ParquetTable": "tables",
    "PenstockDataSource": "source",
    "Progress": "pipeline",
    "TopicSink": "topics",
    "by_event": "identity",
    "by_headers": "identity",
    "by_key": "identity",
    "find_java": "java",
    "follow": "pipeline",
    "from_cloudevents": "frames",
    "progress_of": "pipeline",
    "reason": "pipeline",
    "to_cloudevents": "records",
}

__all__ = sorted([*_HOMES, "session"])

_imported, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    try:
        return _imported(name)
    except ImportError as error:
        from penstock.spark.requirements import unusable

        raise unusable(error) from error


# A module of this package has the same name, and would take its place once anything imports it.
from penstock.spark.session import session as session  # noqa: E402
