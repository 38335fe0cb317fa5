"""The log: batches by offset, in memory or in Kafka's directory format.

`penstock.log.scan` reads such a directory into Arrow without a broker. It alone needs an optional
library, which is why every name here is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.log.contract import FileRegion as FileRegion
    from penstock.log.contract import Log as Log
    from penstock.log.contract import LogConfig as LogConfig
    from penstock.log.contract import Slice as Slice
    from penstock.log.directory.data_directory import DataDirectory as DataDirectory
    from penstock.log.disk import DiskLog as DiskLog
    from penstock.log.memory import MemoryLog as MemoryLog
    from penstock.log.scan import read_log as read_log
    from penstock.log.scan import scan_log as scan_log

_HOMES = {
    "DataDirectory": "directory.data_directory",
    "DiskLog": "disk",
    "FileRegion": "contract",
    "Log": "contract",
    "LogConfig": "contract",
    "MemoryLog": "memory",
    "Slice": "contract",
    "read_log": "scan",
    "scan_log": "scan",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
