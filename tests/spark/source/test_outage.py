from __future__ import annotations

from penstock.errors import AuthenticationError, KafkaError, NetworkError, PenstockError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.source.brokers import Outage, is_outage


def test_an_outage_is_told_once_a_minute_and_ends_at_its_limit() -> None:
    lines: list[str] = []
    outage = Outage("host:9092", 200.0, lines.append)
    gone = NetworkError("connection refused")
    assert not outage.is_endured(gone, 0.0)  # a first contact that fails
    outage.is_over(1.0)
    assert [outage.is_endured(gone, at) for at in (10.0, 11.0, 69.0, 70.0, 130.0, 209.0)] == [True] * 6
    assert [line.rpartition(", ")[2] for line in lines] == [
        "0 s so far",
        "60 s so far",
        "120 s so far",
        "199 s so far",
    ]
    assert "host:9092" in lines[0]
    assert "connection refused" in lines[0]
    assert "200 s (maxBrokerOutage)" in lines[0]
    assert not outage.is_endured(gone, 210.0)
    outage.is_over(211.0)
    assert "answer again after 201 s" in lines[-1]
    assert outage.is_endured(gone, 1000.0)


def test_only_what_passes_is_an_outage() -> None:
    passing: list[PenstockError] = [
        NetworkError("x"),
        RequestTimeoutError("x"),
        KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "LEADER_NOT_AVAILABLE", "x", retriable=True),
    ]
    lasting: list[PenstockError] = [
        AuthenticationError("x"),
        KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED", "x"),
        PenstockError("x"),
    ]
    assert all(map(is_outage, passing))
    assert not any(map(is_outage, lasting))
