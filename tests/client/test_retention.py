"""Tests of records with old timestamps, which retention will remove: writers log a warning."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from client.fake_broker import fake_broker
from client.jumping_loop import run_jumping
from penstock import write_topic
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.topic_settings import retention_warning, topic_settings
from penstock.client.config import ClientConfig
from penstock.client.produce.columns import oldest_time_ms
from penstock.protocol.api import ApiKey

WEEK_MS = 7 * 86_400_000
NOW_MS = 1_700_000_000_000
OLD_MS = 1_388_000_000_000
NEW_TOPIC = Callable[..., str]


def table(when: object, kind: pa.DataType, name: str = "timestamp") -> pa.Table:
    return pa.table({"value": [b"v", b"w"], name: pa.array([when, None], kind)})


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        r.getMessage()
        for r in caplog.records
        if r.levelno == logging.WARNING and "retention" in r.getMessage()
    ]


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        (datetime(2013, 12, 25, tzinfo=UTC), pa.timestamp("us", tz="UTC")),
        (datetime(2013, 12, 25), pa.timestamp("ns")),
        (OLD_MS, pa.int64()),
    ],
)
def test_times_of_years_ago_are_warned_of(
    servers: str, new_topic: NEW_TOPIC, caplog: pytest.LogCaptureFixture, when: object, kind: pa.DataType
) -> None:
    topic = new_topic(retention_ms=str(WEEK_MS))
    write_topic([table(int(time.time() * 1000), pa.int64()), table(when, kind)], topic, servers)
    (said,) = warnings_of(caplog)
    assert said.startswith(f"topic {topic!r} keeps records for retention.ms = {WEEK_MS} (7 days)")
    assert "of 2013-12-25: the broker will remove them" in said


@pytest.mark.parametrize(
    "settings",
    [
        {"retention_ms": "-1"},
        {"retention_ms": str(50 * 365 * 86_400_000)},
        {"cleanup_policy": "compact"},
        {"message_timestamp_type": "LogAppendTime"},
    ],
)
def test_topics_that_keep_them_are_not(
    servers: str, new_topic: NEW_TOPIC, caplog: pytest.LogCaptureFixture, settings: dict[str, str]
) -> None:
    keyed = table(OLD_MS, pa.int64()).append_column("key", pa.array([b"a", b"b"]))
    write_topic(keyed, new_topic(**settings), servers)
    assert warnings_of(caplog) == []


def test_records_of_now_cost_no_question(
    servers: str, new_topic: NEW_TOPIC, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("penstock.client.produce.producer.topic_settings", asked.append)
    topic = new_topic(retention_ms=str(WEEK_MS))
    write_topic(pa.table({"value": [b"v"]}), topic, servers)
    write_topic(table(int(time.time() * 1000), pa.int64()), topic, servers)
    assert asked == []


def test_the_field_may_have_another_name() -> None:
    assert oldest_time_ms(table(OLD_MS, pa.int64(), "at"), {"timestamp": "at"}) == OLD_MS
    assert oldest_time_ms(table(OLD_MS, pa.int64(), "at"), {}) is None
    assert oldest_time_ms(table(None, pa.int64()), {}) is None


@pytest.mark.parametrize(
    ("settings", "oldest_ms", "is_warned"),
    [
        ({}, OLD_MS, False),
        ({"retention.ms": str(WEEK_MS)}, OLD_MS, True),
        ({"retention.ms": str(WEEK_MS)}, NOW_MS - WEEK_MS, False),
        ({"retention.ms": str(WEEK_MS)}, NOW_MS - WEEK_MS - 1, True),
        ({"retention.ms": str(WEEK_MS)}, -(2**63), True),
        ({"retention.ms": "no number"}, OLD_MS, False),
        ({"retention.ms": "0", "cleanup.policy": "compact,delete"}, NOW_MS - 5, True),
    ],
)
def test_the_rule(settings: dict[str, str], oldest_ms: int, is_warned: bool) -> None:
    assert (retention_warning("t", settings, oldest_ms, NOW_MS) is not None) == is_warned


@pytest.mark.parametrize("without", [[ApiKey.DESCRIBE_CONFIGS], []])
def test_a_broker_that_does_not_tell_its_settings_is_not_guessed_at(without: list[ApiKey]) -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}, without=without) as broker:
            broker.fail(ApiKey.DESCRIBE_CONFIGS, 29)
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                assert await topic_settings(client, "t", ["retention.ms"]) == {}

    run_jumping(play())
