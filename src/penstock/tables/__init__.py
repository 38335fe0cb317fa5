"""Read topics, log directories, landed tables and topics of Kafka 0.7 as Arrow tables; write tables.

Every name is imported on first use, since Arrow tables need numpy and pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.tables.async_topics import read_topic_async as read_topic_async
    from penstock.tables.async_topics import scan_topic_async as scan_topic_async
    from penstock.tables.async_topics import write_topic_async as write_topic_async
    from penstock.tables.landed import landed_dataset as landed_dataset
    from penstock.tables.landed import landed_files as landed_files
    from penstock.tables.logs import read_log as read_log
    from penstock.tables.logs import scan_log as scan_log
    from penstock.tables.scans import ArrowScan as ArrowScan
    from penstock.tables.scans import AsyncArrowScan as AsyncArrowScan
    from penstock.tables.topics import read_topic as read_topic
    from penstock.tables.topics import scan_topic as scan_topic
    from penstock.tables.topics import write_topic as write_topic

_HOMES = {
    "ArrowScan": "scans",
    "AsyncArrowScan": "scans",
    "landed_dataset": "landed",
    "landed_files": "landed",
    "read_log": "logs",
    "read_topic": "topics",
    "read_topic_async": "async_topics",
    "scan_log": "logs",
    "scan_topic": "topics",
    "scan_topic_async": "async_topics",
    "write_topic": "topics",
    "write_topic_async": "async_topics",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
