"""Kafka topics in Spark: the data source `penstock`, a session with fitting settings, and exactly-once sinks.

Names are imported on first use, because Spark's workers import this package and need only parts of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.spark.functions.from_cloudevents import from_cloudevents as from_cloudevents
    from penstock.spark.functions.schemas import from_schema as from_schema
    from penstock.spark.functions.schemas import to_schema as to_schema
    from penstock.spark.functions.to_cloudevents import to_cloudevents as to_cloudevents
    from penstock.spark.monitoring.listener import QueryReports as QueryReports
    from penstock.spark.monitoring.names import query_name as query_name
    from penstock.spark.monitoring.observed import observed as observed
    from penstock.spark.runtime.java import find_java as find_java
    from penstock.spark.runtime.session import configure as configure
    from penstock.spark.runtime.session import session as session
    from penstock.spark.sinks.land import land as land
    from penstock.spark.sinks.progress import Progress as Progress
    from penstock.spark.sinks.progress import follow as follow
    from penstock.spark.sinks.progress import progress_of as progress_of
    from penstock.spark.sinks.progress import reason as reason
    from penstock.spark.sinks.tables import ParquetTable as ParquetTable
    from penstock.spark.source.data_source import PenstockDataSource as PenstockDataSource
    from penstock.spark.source.planning import DataLossError as DataLossError

_HOMES = {
    "DataLossError": "source.planning",
    "ParquetTable": "sinks.tables",
    "PenstockDataSource": "source.data_source",
    "Progress": "sinks.progress",
    "QueryReports": "monitoring.listener",
    "configure": "runtime.session",
    "find_java": "runtime.java",
    "follow": "sinks.progress",
    "from_cloudevents": "functions.from_cloudevents",
    "from_schema": "functions.schemas",
    "land": "sinks.land",
    "observed": "monitoring.observed",
    "progress_of": "sinks.progress",
    "query_name": "monitoring.names",
    "reason": "sinks.progress",
    "session": "runtime.session",
    "to_cloudevents": "functions.to_cloudevents",
    "to_schema": "functions.schemas",
}

__all__ = sorted(_HOMES)

_imported, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    try:
        return _imported(name)
    except ImportError as error:
        from penstock.spark.requirements import unusable

        raise unusable(error) from error
