"""Read a log directory into Arrow with `read_log` and `scan_log`, compared with reading its cached bytes.

"Read the bytes" reads every segment into a buffer of 1 MiB without parsing it. The other contestants verify
every checksum, and make all columns except headers, or only the value. A table is as large as the log and
needs new memory, which a scan does not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import Contestant, Outcome, arguments, measure, report
from penstock.log import DiskLog, LogConfig, read_log, scan_log
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import set_base_offset

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
BATCH_BYTES = 64 * 1024
SEGMENT_BYTES = 128 << 20
T = 1_700_000_000_000


def fill(path: Path, value_bytes: int, total_bytes: int) -> int:
    """Write a log of one partition; return the number of its records."""
    count = BATCH_BYTES // value_bytes
    noise = (b'{"station":"%06d","reading":%d}' % (n * 7919 % 977, n * n) for n in range(count))
    values = [(text * (value_bytes // len(text) + 1))[:value_bytes] for text in noise]
    batch = bytearray(
        encode_batch(
            [(None, value, (), T + n) for n, value in enumerate(values)],
            partition_leader_epoch=0,
        )
    )
    log = DiskLog(str(path / "events-0"), LogConfig(segment_bytes=SEGMENT_BYTES), now_ms=T)
    while log.size_bytes < total_bytes:
        first = log.end_offset
        set_base_offset(batch, 0, first)
        log.append(
            memoryview(batch),
            first_offset=first,
            last_offset=first + count - 1,
            max_timestamp=T + count - 1,
            now_ms=T,
        )
    log.close()
    return log.end_offset


def read_bytes(path: Path) -> None:
    buffer = bytearray(1 << 20)
    for segment in sorted(path.glob("events-0/*.log")):
        with segment.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def main() -> None:
    options = arguments("A log directory to Arrow", rounds=5)
    total = (32 if options.quick else 256) << 20
    for value_bytes in (100, 1000):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            records = fill(path, value_bytes, total)
            size = sum(segment.stat().st_size for segment in path.glob("events-0/*.log"))

            def scan(path: Path = path) -> Outcome:
                return Outcome(sum(batch.num_rows for batch in scan_log(path, columns=COLUMNS)))

            def table(columns: tuple[str, ...], path: Path = path) -> Outcome:
                return Outcome(read_log(path, columns=columns).num_rows)

            contestants = [
                Contestant("read the bytes", lambda path=path: read_bytes(path), records, size),
                Contestant("scan_log", scan, records, size),
                Contestant("read_log", lambda: table(COLUMNS), records, size),
                Contestant("read_log, value only", lambda: table(("value",)), records, size),
            ]
            measure(contestants, options.rounds)
            report(f"{value_bytes} B values, {size / 1e6:,.0f} MB of log", contestants)


if __name__ == "__main__":
    main()
