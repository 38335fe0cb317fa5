"""Tests of GetTelemetrySubscriptions and PushTelemetry by the rules of Kafka's ClientMetricsManager."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from broker.bench_node import NOW_MS, context_of, make_node
from broker.handlers.test_admin_changes import DELETE, SET, alter
from penstock.broker.client_metrics.newest_values import CLIENTS_MAX, SERIES_MAX, NewestValues, Pusher
from penstock.broker.client_metrics.page import as_json
from penstock.broker.client_metrics.service import INSTANCES_MAX, Origin
from penstock.broker.client_metrics.subscriptions import MATCHING_CPU_S, asked_of, subscription_of
from penstock.broker.handlers.get_telemetry_subscriptions import get_telemetry_subscriptions
from penstock.broker.handlers.push_telemetry import push_telemetry
from penstock.broker.node import Node
from penstock.broker.requests.kept_state import KeptState
from penstock.clock import ManualClock
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.messages.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.uuid import ZERO_UUID, uuid_to_text
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.telemetry.otlp import write_metrics
from penstock.telemetry.points import MetricKind, Point

METRICS = 16
ID = bytes(range(16))
RECORDS = "org.apache.kafka.producer.record.send.total"


class Bench:
    """A broker that accepts client metrics, with one client connection, for the tests of this module."""

    def __init__(self, **settings: object) -> None:
        self.clock = ManualClock(NOW_MS)
        self.node: Node = make_node(clock=self.clock, penstock_client_metrics=True, **settings)
        self.session = context_of(self.node, 0).session
        self.session.client_id, self.session.software_name = "loader", "made-up"
        self.session.client_port = 4711

    def context(self) -> Any:
        context = context_of(self.node, 0)
        context.session = self.session
        return context

    def set(self, name: str = "all", **texts: str) -> None:
        changes = [(key.replace("_", "."), SET, text) for key, text in texts.items()]
        assert alter(self.node, *changes, kind=METRICS, name=name) == (0, None)

    def get(self, client_instance_id: bytes = ID) -> Any:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id)
        return get_telemetry_subscriptions(request, self.context())

    def push(self, subscription_id: int, metrics: bytes | None = None, codec: int = 0, **fields: Any) -> int:
        request = PushTelemetryRequest(
            client_instance_id=fields.pop("client_instance_id", ID),
            subscription_id=subscription_id,
            compression_type=codec,
            metrics=total(1) if metrics is None else metrics,
            **fields,
        )
        answer = push_telemetry(request, self.context())
        code: int = answer.error_code
        return code

    @property
    def values(self) -> dict[str, float]:
        assert self.node.client_metrics is not None
        return {row.name: row.value for row in self.node.client_metrics.values.rows()}


def total(value: float, kind: MetricKind = MetricKind.DELTA, name: str = RECORDS) -> bytes:
    return write_metrics([Point(name, kind, value, (("node.id", "1"),), 5)], {"group_id": "g"})


def test_a_broker_without_a_receiver_does_not_offer_it() -> None:
    keys = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert not keys & set(make_node().routes)
    assert keys <= set(Bench().node.routes)
    assert make_node().client_metrics is None


def test_without_a_subscription_nothing_is_asked_for_but_to_come_again() -> None:
    answer = Bench().get(ZERO_UUID)
    assert (answer.error_code, answer.requested_metrics, answer.push_interval_ms) == (0, [], 300_000)
    assert answer.client_instance_id not in (ZERO_UUID, ID)
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert (answer.telemetry_max_bytes, answer.delta_temporality) == (1 << 20, True)


def test_subscriptions_that_match_are_joined() -> None:
    bench = Bench()
    bench.set(
        "a", metrics="org.b,org.a", interval_ms="5000", match="client_id=load.*,client_source_port=4711"
    )
    bench.set("b", metrics="org.b,org.c", interval_ms="2000", match="client_software_name=made-up")
    bench.set("c", metrics="org.d", interval_ms="100", match="client_id=load")
    answer = bench.get()
    assert answer.requested_metrics == ["org.a", "org.b", "org.c"]
    assert answer.push_interval_ms == 2000
    bench.set("d", metrics="*,x", match=f"client_instance_id={uuid_to_text(ID)}")
    assert bench.get().requested_metrics == ["*"]


def test_another_subscription_is_another_id_and_known_at_once() -> None:
    bench = Bench()
    bench.set(metrics="a", interval_ms="1000")
    first = bench.get().subscription_id
    bench.set(interval_ms="2000")
    second = bench.get().subscription_id  # asked for at once, though the interval is not over
    assert alter(bench.node, ("interval.ms", SET, "1000"), kind=METRICS, name="all") == (0, None)
    assert first != second
    assert bench.push(second) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert bench.get().subscription_id == first
    bench.clock.advance(1000)
    assert bench.push(first) == 0
    for name in ("metrics", "interval.ms"):
        assert alter(bench.node, (name, DELETE, None), kind=METRICS, name="all") == (0, None)
    assert bench.get().requested_metrics == []


def test_what_comes_too_early_is_throttled() -> None:
    bench = Bench()
    bench.set(metrics="*", interval_ms="1000")
    subscription = bench.get().subscription_id
    assert bench.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert bench.push(subscription) == 0  # the first one may come at any time
    bench.clock.advance(999)
    assert bench.push(subscription) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert bench.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    bench.clock.advance(1)
    assert bench.push(subscription) == 0
    assert bench.push(subscription, terminating=True) == 0  # the last one, too


def test_after_an_unknown_subscription_it_may_ask_at_once() -> None:
    bench = Bench()
    bench.set(metrics="*", interval_ms="1000")
    subscription = bench.get().subscription_id
    assert bench.push(subscription + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert bench.get().error_code == 0
    bench.clock.advance(1000)
    assert bench.push(subscription, codec=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert bench.get().error_code == 0
    assert bench.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_nothing_comes_after_the_last_push() -> None:
    bench = Bench()
    bench.set(metrics="*", interval_ms="100")
    subscription = bench.get().subscription_id
    assert bench.push(subscription, terminating=True) == 0
    bench.clock.advance(100)
    assert bench.push(subscription) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("client_instance_id", [ZERO_UUID, bytes(15) + b"\x01"])
def test_a_push_without_an_id_is_refused(client_instance_id: bytes) -> None:
    bench = Bench()
    assert bench.push(0, client_instance_id=client_instance_id) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_every_compression(codec: CompressionCodec) -> None:
    bench = Bench()
    subscription = bench.get().subscription_id
    assert bench.push(subscription, compress(codec, total(7)), codec) == 0
    assert bench.values == {RECORDS: 7}


def test_differences_are_added_up_and_totals_and_gauges_replaced() -> None:
    bench = Bench()
    bench.set(metrics="*", interval_ms="100")
    subscription = bench.get().subscription_id
    for value in (3, 4):
        assert (
            bench.push(
                subscription,
                total(value) + total(value, MetricKind.GAUGE, "g") + total(9, MetricKind.TOTAL, "t"),
            )
            == 0
        )
        bench.clock.advance(100)
    assert bench.values == {RECORDS: 7, "g": 4, "t": 9}
    assert bench.node.client_metrics is not None
    row = bench.node.client_metrics.values.rows()[0]
    assert (row.client_id, row.software_name, row.address) == ("loader", "made-up", "127.0.0.1")
    assert (row.labels, row.attributes) == ({"node.id": "1"}, {"group_id": "g"})
    assert (row.client_instance_id, row.time_ms, row.is_last) == (uuid_to_text(ID), NOW_MS + 100, False)


@pytest.mark.parametrize(
    ("metrics", "codec", "code"),
    [
        (b"\xff", 0, ErrorCode.INVALID_RECORD),
        (b"not zstd", 4, ErrorCode.INVALID_RECORD),
        (bytes(2001), 0, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(CompressionCodec.ZSTD, bytes(3000)), 4, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(CompressionCodec.GZIP, bytes(3000)), 1, ErrorCode.TELEMETRY_TOO_LARGE),
        (b"", 0, ErrorCode.NONE),
    ],
)
def test_what_cannot_be_read_is_refused(
    metrics: bytes, codec: int, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(telemetry_max_bytes=2000)
    subscription = bench.get().subscription_id
    with caplog.at_level(logging.WARNING):
        assert bench.push(subscription, metrics, codec) == code
    assert bench.values == {}


def test_too_many_fields_are_too_large() -> None:
    bench = Bench()
    assert bench.push(bench.get().subscription_id, b"\x18\x01" * 60_000) == ErrorCode.TELEMETRY_TOO_LARGE


def test_the_end_of_a_connection_forgets_the_client_and_keeps_its_values() -> None:
    bench = Bench()
    bench.set(metrics="*", interval_ms="1000")
    subscription = bench.get().subscription_id
    assert bench.push(subscription) == 0
    bench.session.release()
    assert bench.push(subscription) == 0  # as a client that has not been seen before
    assert bench.values == {RECORDS: 2}


def test_silent_clients_are_forgotten() -> None:
    bench = Bench()
    service = bench.node.client_metrics
    assert service is not None
    bench.set(metrics="*", interval_ms="1000")
    bench.get()
    for wait_ms, known in ((59_000, 1), (12_000, 0)):
        bench.clock.advance(wait_ms)
        bench.node.maintain(bench.clock.now_ms())
        assert len(service._instances) == known


def test_clients_that_make_up_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.broker.client_metrics.service.INSTANCES_MAX", 10)
    bench = Bench()
    service = bench.node.client_metrics
    assert service is not None
    for number in range(25):
        assert bench.get(number.to_bytes(16, "big")).error_code == 0
    assert len(service._instances) == 10
    assert INSTANCES_MAX == 16384


# --- what is kept -------------------------------------------------------------------------------------------


def taken(values: NewestValues, number: int, *points: Point) -> None:
    pusher = Pusher(str(number), "c", "s", "1", "127.0.0.1")
    values.take(number.to_bytes(16, "big"), pusher, {}, points, NOW_MS, is_last=False)


def test_values_of_clients_are_bounded_and_the_oldest_go() -> None:
    values = NewestValues(KeptState(1 << 30))
    for number in range(CLIENTS_MAX + 5):
        taken(values, number, Point("m", MetricKind.GAUGE, 1))
    assert values.rows()[0].client_instance_id == "5"
    assert len(values.rows()) == CLIENTS_MAX


def test_series_of_a_client_are_bounded_and_the_oldest_go() -> None:
    values = NewestValues(KeptState(1 << 30))
    for number in range(SERIES_MAX + 5):
        taken(values, 1, Point(f"{number:06}", MetricKind.GAUGE, 1))
    rows = values.rows()
    assert (len(rows), rows[0].name) == (SERIES_MAX, "000005")


def test_values_are_charged_to_the_budget() -> None:
    kept = KeptState(100_000)
    values = NewestValues(kept)
    for number in range(100):
        taken(
            values,
            number,
            *(Point(f"{each}", MetricKind.GAUGE, 1, (("topic", "t" * 100),)) for each in range(10)),
        )
        assert kept.sizes()["client metrics"] <= 100_000
    assert 0 < len({row.client_instance_id for row in values.rows()}) < 100
    assert kept.given_up["client metrics"] > 80
    while values._drop_oldest():
        pass
    assert values.size_bytes == 0


def test_the_page_has_every_value_and_ends() -> None:
    values = NewestValues(KeptState(1 << 30))
    taken(values, 1, Point("m", MetricKind.GAUGE, float("nan")))
    taken(values, 2, Point("m", MetricKind.TOTAL, 3))
    rows = json.loads(as_json(values.rows()))
    assert [(row["client_instance_id"], row["kind"], row["value"]) for row in rows] == [
        ("1", "gauge", None),
        ("2", "sum", 3),
    ]


# --- choosing clients ---------------------------------------------------------------------------------------


def test_expressions_cost_what_is_left_of_a_budget() -> None:
    subscription = subscription_of({"match": "client_id=x+", "metrics": "m"})
    times = iter((0.0, 0.0, MATCHING_CPU_S / 2, MATCHING_CPU_S * 2))
    asked = asked_of({"client_id": "xx"}, [subscription] * 3, lambda: next(times))
    assert asked.metrics == ("m",)
    late = iter((0.0, MATCHING_CPU_S * 2))
    assert asked_of({"client_id": "xx"}, [subscription], lambda: next(late)).metrics == ()


@pytest.mark.parametrize("value", [None, "x" * 256])
def test_what_a_client_does_not_say_or_says_at_length_matches_nothing(value: str | None) -> None:
    subscription = subscription_of({"match": "client_software_name=.*", "metrics": "m"})
    assert asked_of({"client_software_name": value}, [subscription], lambda: 0.0).metrics == ()


def test_an_expression_of_java_chooses_no_client(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.node.cluster.image.resource_configs[METRICS, "old"] = {
        "match": r"client_id=(?<!a)b",
        "metrics": "*",
    }
    with caplog.at_level(logging.WARNING):
        assert bench.get().requested_metrics == []
    assert "client metrics old chooses no client" in caplog.text
    assert alter(bench.node, ("match", SET, "client_id=(?<!a)b"), kind=METRICS, name="new")[0] == 40


def test_origin_of_a_client_without_a_name() -> None:
    bench = Bench()
    service = bench.node.client_metrics
    assert service is not None
    code, client_instance_id, _ = service.subscribe(ZERO_UUID, Origin("", None, None, "::1", 0), 0.0)
    assert code == 0
    assert len(client_instance_id) == 16
