"""``penstock consume --share``: prints the records that a member of a share group receives (KIP-932)."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from penstock.cli import waiting
from penstock.cli.formats import Printer
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.client import ShareConsumer

POLL_MS = 200
RECORDS_MAX = 10_000

IDLE_S = 2.0
"""With ``-e``, the command ends if assigned partitions yield no record for this number of seconds."""


def share_config(
    config: Mapping[str, str],
    group: str,
    partitions: Sequence[int],
    offsets: Sequence[str],
    isolation: str | None,
    count: int | None,
) -> dict[str, object]:
    """Return the settings of a share group member. With `count`, no more records are locked than printed.

    Raises:
        ConfigError: partitions, a start or an isolation level are given, which a member cannot choose.
    """
    if partitions:
        raise ConfigError("-p and --share exclude each other: a share group has all partitions of a topic")
    if offsets:
        raise ConfigError(
            "-o and --share exclude each other: penstock share reset moves a share group, and its setting "
            "share.auto.offset.reset says where it begins"
        )
    if isolation is not None:
        raise ConfigError(
            "--isolation and --share exclude each other: it is the setting share.isolation.level of the group"
        )
    limit = {"share.acquire.mode": "record_limit"} if count is not None else {}
    return {**limit, **config, "group.id": group}


def print_to(
    output: IO[bytes],
    consumer: ShareConsumer,
    topics: Sequence[str],
    printer: Printer,
    leaving: threading.Event,
    *,
    count: int | None,
    exit_at_end: bool,
    unbuffered: bool,
) -> None:
    """Print records until the count or the end is reached, or `leaving` is set.

    Printed records are accepted, others are released.
    """
    consumer.subscribe(topics)
    left = -1 if count is None else count
    if not exit_at_end:
        waiting.idle(f"waiting for messages of {', '.join(topics)}; Ctrl-C ends")
    idle_since = time.monotonic()
    while left != 0 and not leaving.is_set():
        limit = RECORDS_MAX if left < 0 else min(left, RECORDS_MAX)
        # Accepts the records of the poll before, which are out by now.
        records = consumer.poll(timeout_ms=POLL_MS, max_records=limit)
        if records:
            waiting.step_aside()
        for record in records:
            output.write(printer(record))
            if unbuffered:
                output.flush()
        output.flush()
        left -= len(records)
        now = time.monotonic()
        if records or not consumer.assignment():
            idle_since = now
        elif exit_at_end and now - idle_since >= IDLE_S:
            return
