"""The log of a partition: its record batches, in memory or in files of Kafka's format.

`penstock.log.disk.scan` reads a data directory into Arrow without a broker. Only that module needs an
optional library, which is why every name here is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.log.contract import FileRegion as FileRegion
    from penstock.log.contract import Log as Log
    from penstock.log.contract import LogConfig as LogConfig
    from penstock.log.contract import Slice as Slice
    from penstock.log.disk.data_directory import DataDirectory as DataDirectory
    from penstock.log.disk.disk_log import DiskLog as DiskLog
    from penstock.log.disk.scan import read_log as read_log
    from penstock.log.disk.scan import scan_log as scan_log
    from penstock.log.memory import MemoryLog as MemoryLog

_HOMES = {
    "DataDirectory": "disk.data_directory",
    "DiskLog": "disk.disk_log",
    "FileRegion": "contract",
    "Log": "contract",
    "LogConfig": "contract",
    "MemoryLog": "memory",
    "Slice": "contract",
    "read_log": "disk.scan",
    "scan_log": "disk.scan",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
