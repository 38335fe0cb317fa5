from __future__ import annotations

import pytest

from for_each import for_each
from penstock.client.cluster.retry import Backoff, RetryVerdict, judge, timed_out
from penstock.errors import ConfigError, CorruptRecordError, NetworkError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode, error_for


def test_delays_double_up_to_the_limit() -> None:
    backoff = Backoff(100, 1000)
    assert [backoff.seconds(n, lambda: 0.5) for n in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_delays_vary_by_a_fifth() -> None:
    backoff = Backoff(100, 1000)
    assert backoff.seconds(0, lambda: 0.0) == pytest.approx(0.08)
    assert backoff.seconds(10_000, lambda: 1.0) == pytest.approx(1.2)


def test_a_maximum_below_the_minimum_is_the_minimum() -> None:
    assert Backoff(500, 100).seconds(5, lambda: 0.5) == 0.5


@for_each(
    [
        (error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER), RetryVerdict.REFRESH),
        (error_for(ErrorCode.UNKNOWN_TOPIC_ID), RetryVerdict.REFRESH),
        (error_for(ErrorCode.REQUEST_TIMED_OUT), RetryVerdict.RETRY),
        (error_for(ErrorCode.NOT_ENOUGH_REPLICAS), RetryVerdict.RETRY),
        (error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED), RetryVerdict.FATAL),
        (error_for(ErrorCode.MESSAGE_TOO_LARGE), RetryVerdict.FATAL),
        (NetworkError("gone"), RetryVerdict.REFRESH),
        (RequestTimeoutError("late"), RetryVerdict.REFRESH),
        (CorruptRecordError("bits"), RetryVerdict.FATAL),
        (ConfigError("no"), RetryVerdict.FATAL),
        (ValueError("bug"), RetryVerdict.FATAL),
    ]
)
def test_verdicts(error: Exception, verdict: RetryVerdict) -> None:
    assert judge(error) is verdict


def test_a_timeout_names_the_obstacle() -> None:
    assert str(timed_out("reading", 1500, NetworkError("refused"))) == (
        "reading did not succeed within 1.5 s; the last obstacle: refused"
    )
