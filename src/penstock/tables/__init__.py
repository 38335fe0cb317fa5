"""Topics, log directories and topics of Kafka 0.7 as Arrow tables: the analyst's calls.

Every name is imported on first use, since Arrow tables need numpy and pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.tables.logs import read_log as read_log
    from penstock.tables.logs import scan_log as scan_log
    from penstock.tables.topics import read_topic as read_topic
    from penstock.tables.topics import scan_topic as scan_topic
    from penstock.tables.topics import write_topic as write_topic

_HOMES = {
    "read_log": "logs",
    "read_topic": "topics",
    "scan_log": "logs",
    "scan_topic": "topics",
    "write_topic": "topics",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
