"""Stores coordinators' changes: they are written to the log first, and take effect in memory afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.coordination.timers import Timer
    from penstock.clock import Clock
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")


def store_records(append: Callable[[], int], what: str) -> int:
    """Store the records of one request or timer by calling `append`; return its result.

    `what` describes the records in the broker's log, such as "group g".

    Raises:
        KafkaError: the error for the response: NOT_COORDINATOR (16), the log cannot be written, or
            UNKNOWN_SERVER_ERROR (-1), the records exceed the largest batch of the topic.
    """
    try:
        return append()
    except StorageError as error:
        logger.error("%s could not be stored: %s", what, error)
        raise error_for(ErrorCode.NOT_COORDINATOR, str(error)) from None
    except KafkaError as error:
        if error.code != ErrorCode.MESSAGE_TOO_LARGE:
            raise
        logger.error("%s could not be stored: %s", what, error)
        raise error_for(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def work_off_due(
    due: Iterable[Any],
    carry_out: Callable[[Any], object],
    fire_again: Callable[[Timer, float], object],
    clock: Clock,
    failures: Failures,
    now: float,
) -> None:
    """Compute and store the changes of all timers that have fired; `carry_out` stores one timer's changes.

    A timer whose changes could not be stored fires again.
    """
    for timer, make_plan in due:
        try:
            plan = make_plan(now, clock.now_ms())
            if plan is not None:
                carry_out(plan)
        except Exception as error:
            # A barrier: one group must not stop the timers of the others.
            if not isinstance(error, KafkaError):
                failures.caught("group timer", "a timer of a group")
            fire_again(timer, now)
