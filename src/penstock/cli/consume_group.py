"""``penstock consume --group``: prints the records that a member of a consumer group receives."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from penstock.cli import waiting
from penstock.cli.formats import Printer
from penstock.cli.outcome import note
from penstock.cli.positions import ReadSpan, StartKind
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.client import Consumer

POLL_MS = 200
RECORDS_MAX = 10_000
TERMINATED = 128 + signal.SIGTERM


def group_config(
    config: Mapping[str, str], group: str, partitions: Sequence[int], span: ReadSpan
) -> dict[str, object]:
    """Return the settings of a group member.

    Partitions without a committed offset start at the beginning, or at the position that ``-o`` sets.

    Raises:
        ConfigError: partitions are given, or a start that a group does not support.
    """
    if partitions:
        raise ConfigError("-p and -G exclude each other: in a group the partitions are shared out")
    if span.start not in (StartKind.BEGINNING, StartKind.END) or span.stop_ms is not None:
        raise ConfigError(
            "-o with -G can only be beginning or end, for partitions without a committed offset; "
            "penstock group reset moves a group"
        )
    reset = "earliest" if span.start is StartKind.BEGINNING else "latest"
    return {"auto.offset.reset": reset, **config, "group.id": group}


@contextmanager
def leaving_on_sigterm() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM sets, so that printed records can be committed before leaving the group.

    A second SIGTERM ends the process at once. The block ends with the exit code of SIGTERM.
    """
    leaving = threading.Event()

    def leave(*_: object) -> None:
        if leaving.is_set():
            raise SystemExit(TERMINATED)
        leaving.set()

    if threading.current_thread() is not threading.main_thread():
        yield leaving
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield leaving
    finally:
        signal.signal(signal.SIGTERM, before)
    if leaving.is_set():
        raise SystemExit(TERMINATED)


def print_to(
    output: IO[bytes],
    consumer: Consumer,
    topics: Sequence[str],
    printer: Printer,
    leaving: threading.Event,
    *,
    count: int | None,
    exit_at_end: bool,
    unbuffered: bool,
    quiet: bool,
) -> None:
    """Print records until the count or the end is reached, or `leaving` is set; commit what was printed."""
    consumer.subscribe(
        topics[0] if len(topics) == 1 else topics,
        on_assigned=None if quiet else lambda partitions: _tell("assigned", partitions),
        on_revoked=None if quiet else lambda partitions: _tell("revoked", partitions),
    )
    left = -1 if count is None else count
    if not exit_at_end:
        waiting.idle(f"waiting for messages of {', '.join(topics)}; Ctrl-C ends")
    while left != 0 and not leaving.is_set():
        limit = RECORDS_MAX if left < 0 else min(left, RECORDS_MAX)
        records = consumer.poll(timeout_ms=POLL_MS, max_records=limit)
        if records:
            waiting.step_aside()
        for record in records:
            output.write(printer(record))
            if unbuffered:
                output.flush()
        # Out before the next poll, which may commit it.
        output.flush()
        left -= len(records)
        if exit_at_end and not records and (lag := consumer.lag()) and not any(lag.values()):
            return


def _tell(word: str, partitions: Sequence[object]) -> None:
    if partitions:
        waiting.step_aside()
        note(f"% {word}: {', '.join(map(str, partitions))}")
