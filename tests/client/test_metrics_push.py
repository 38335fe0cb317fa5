"""Tests of clients that push metrics to brokers (KIP-714), without affecting the client's other work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client.cluster.metrics_push import INTERVAL_S, STEP_S, MetricsPush
from penstock.client.counters import Durations
from penstock.client.standard_metrics import standard_metrics
from penstock.client.statistics import (
    BrokerStatistics,
    GroupStatistics,
    PartitionStatistics,
    Statistics,
    Window,
)
from penstock.errors import ConfigError, NetworkError, RequestTimeoutError, UnsupportedVersionError
from penstock.model import TopicPartition
from penstock.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from penstock.protocol.messages.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.messages.push_telemetry_response import PushTelemetryResponse
from penstock.protocol.uuid import uuid_to_text
from penstock.records.compression.codecs import decompress
from penstock.telemetry.otlp import Pushed, read_metrics
from penstock.telemetry.points import MetricKind
from penstock.testing import KafkaBroker

ID = bytes(range(16))
PRODUCER = "org.apache.kafka.producer."

# --- to a broker --------------------------------------------------------------------------------------------


def test_a_producer_and_a_consumer_push_and_say_goodbye() -> None:
    with KafkaBroker(penstock_client_metrics=True) as broker:
        broker.subscribe_to_client_metrics(["org.apache.kafka."], interval_ms=100)
        topic, at = broker.create_topic(), broker.bootstrap_servers
        with Producer(at, client_id="p") as producer, Consumer(at, client_id="c", group_id="g") as consumer:
            ids = {"p": producer.client_instance_id(), "c": consumer.client_instance_id(10)}
            consumer.assign([(topic, 0)])
            consumer.seek_to_beginning()
            for _ in range(3):
                producer.send(topic, b"v").result(timeout=10)
            assert sum(len(consumer.poll(5_000, max_records=1)) for _ in range(3)) == 3
            deadline = time.monotonic() + 20
            while len({row.client_id for row in broker.client_metrics()}) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        rows = broker.client_metrics()
        values = {(row.client_id, row.name.removeprefix("org.apache.kafka.")): row.value for row in rows}
        assert values["p", "producer.record.send.total"] == 3
        assert values["c", "consumer.fetch.manager.records.consumed.total"] == 3
        assert values["p", "producer.connection.creation.total"] == 1
        assert {row.client_id: row.client_instance_id for row in rows} == ids
        assert {row.is_last for row in rows} == {True}
        assert {row.attributes.get("group_id") for row in rows if row.client_id == "c"} == {"g"}


def test_where_no_broker_takes_metrics_nothing_is_imported() -> None:
    code = (
        "import sys\n"
        "from penstock import Broker, Producer\n"
        "with Broker() as broker, Producer(broker.bootstrap_servers) as producer:\n"
        "    producer.send('t', b'v').result(timeout=10)\n"
        "    print(*(name for name in sys.modules if 'telemetry' in name or 'metrics_push' in name))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_without_metrics_there_is_no_id() -> None:
    with (
        KafkaBroker() as broker,
        Admin(broker.bootstrap_servers) as admin,
        pytest.raises(UnsupportedVersionError, match="takes no metrics"),
    ):
        admin.client_instance_id()
    with KafkaBroker(penstock_client_metrics=True) as broker:
        with (
            Admin(broker.bootstrap_servers, enable_metrics_push=False) as admin,
            pytest.raises(ConfigError, match=r"enable\.metrics\.push"),
        ):
            admin.client_instance_id()
        with Admin(broker.bootstrap_servers) as admin:
            assert len(admin.client_instance_id()) == 22


def test_a_broker_that_does_not_answer_does_not_hold_up_the_end() -> None:
    with KafkaBroker(penstock_client_metrics=True) as broker:
        broker.subscribe_to_client_metrics(interval_ms=3_600_000)
        producer = Producer(broker.bootstrap_servers)
        producer.client_instance_id()
        with broker.paused():
            began = time.monotonic()
            producer.close(timeout=0.1)
            assert time.monotonic() - began < 1.0  # without a timeout it would be LAST_PUSH_S and more


# --- by the rules -------------------------------------------------------------------------------------------


class Bench:
    """A stand-in for a client whose only broker gives prepared answers; it records the requests."""

    def __init__(self, **asked: Any) -> None:
        self.asked = GetTelemetrySubscriptionsResponse(
            client_instance_id=ID,
            subscription_id=7,
            push_interval_ms=10_000,
            telemetry_max_bytes=1 << 20,
            requested_metrics=["*"],
        )
        for name, value in asked.items():
            setattr(self.asked, name, value)
        self.codes: list[int] = []
        """The error codes of the next answers."""
        self.requests: list[Any] = []
        self.failure: Exception | None = None
        self.stats = statistics()
        self.config = SimpleNamespace(client_rack="r", transactional_id=None)
        self.request_timeout_s = 1.0
        self.cluster = SimpleNamespace(nodes={3: SimpleNamespace(address="b:1")})
        connection = SimpleNamespace(address="b:1")
        self.peer: Any = SimpleNamespace(
            versions=SimpleNamespace(ranges={71: (0, 0)}), request=self.request, connection=connection
        )

    def live_peer(self, node_id: int) -> Any:
        return self.peer

    async def request(self, message: Any, timeout_s: float) -> Any:
        self.requests.append(message)
        if self.failure is not None:
            raise self.failure
        code = self.codes.pop(0) if self.codes else 0
        if isinstance(message, PushTelemetryRequest):
            return PushTelemetryResponse(error_code=code)
        return GetTelemetrySubscriptionsResponse(error_code=code) if code else self.asked

    def pushed(self) -> list[Pushed]:
        return [
            read_metrics(bytes(decompress(each.compression_type, each.metrics, 1 << 20)))
            for each in self.requests
            if isinstance(each, PushTelemetryRequest)
        ]


def by_hand(bench: Bench, act: Callable[[MetricsPush], Awaitable[None]]) -> None:
    """Run the steps of the metrics push from a test, instead of its background task."""

    async def run() -> None:
        push = MetricsPush(bench, lambda: bench.stats, lambda: 0.5)  # type: ignore[arg-type]
        push._task.cancel()
        await act(push)
        await push.close(1.0)

    asyncio.run(run())


def statistics(**changes: Any) -> Statistics:
    values: dict[str, Any] = {"client_id": "x", "type": "producer", "ts": 1, "time": 100, "age": 2_000_000}
    return Statistics(**{**values, **changes})


def test_it_asks_then_pushes_at_the_interval_and_says_which_push_is_the_last() -> None:
    bench = Bench(accepted_compression_types=[9, 4, 1])

    async def act(push: MetricsPush) -> None:
        assert await push._step() == 10.0  # half to one and a half of the interval: dice say one
        assert await push._step() == 10.0
        assert await push._step() == 10.0
        assert await push.client_instance_id(0) == uuid_to_text(ID)

    by_hand(bench, act)
    asked, *pushes = bench.requests
    assert asked == GetTelemetrySubscriptionsRequest()
    assert [(each.terminating, each.subscription_id, each.compression_type) for each in pushes] == [
        (False, 7, 4),
        (False, 7, 4),
        (True, 7, 4),
    ]
    assert bench.pushed()[0].attributes == {"client_rack": "r"}


def test_where_nothing_is_asked_for_nothing_is_pushed() -> None:
    bench = Bench(requested_metrics=[])

    async def act(push: MetricsPush) -> None:
        assert await push._step() == 10.0
        assert await push._step() == 10.0

    by_hand(bench, act)
    assert [type(each) for each in bench.requests] == [GetTelemetrySubscriptionsRequest] * 2
    assert bench.requests[1].client_instance_id == ID


@pytest.mark.parametrize(
    ("code", "wait_s", "asks_again", "ends"),
    [
        (117, STEP_S, True, False),
        (76, STEP_S, True, False),
        (89, 10.0, True, False),
        (118, 10.0, True, False),
        (42, 10.0, False, True),
        (87, 10.0, False, True),
        (-1, 10.0, False, True),
    ],
)
def test_what_follows_an_error(code: int, wait_s: float, asks_again: bool, ends: bool) -> None:
    bench = Bench()

    async def act(push: MetricsPush) -> None:
        await push._step()
        bench.codes = [code]
        assert await push._step() == wait_s
        assert push._has_ended == ends
        if asks_again:
            await push._step()
            assert isinstance(bench.requests[-1], GetTelemetrySubscriptionsRequest)

    by_hand(bench, act)
    assert bench.requests[-1].terminating == (not ends)


def test_what_was_not_taken_comes_with_the_next_push() -> None:
    bench = Bench(delta_temporality=True)

    async def act(push: MetricsPush) -> None:
        await push._step()
        for total, code in ((5, 0), (8, 118), (9, 0)):
            bench.stats = statistics(txmsgs=total)
            bench.codes = [code]
            await push._step()
            if code:
                await push._step()

    by_hand(bench, act)
    sums = [
        point.value
        for each in bench.pushed()
        for point in each.points
        if point.name == PRODUCER + "record.send.total"
    ]
    assert sums == [5, 3, 4, 0]


@pytest.mark.parametrize("failure", [NetworkError("gone"), RequestTimeoutError("late")])
def test_a_broker_that_fails_is_asked_later(failure: Exception) -> None:
    bench = Bench()
    bench.failure = failure

    async def act(push: MetricsPush) -> None:
        assert await push._step() == INTERVAL_S
        with pytest.raises(RequestTimeoutError, match="no broker has given"):
            await push.client_instance_id(0)
        bench.failure = None
        await push._step()
        bench.failure = failure
        assert await push._step() == 10.0

    by_hand(bench, act)


def test_without_an_open_connection_none_is_opened() -> None:
    bench = Bench()
    bench.peer = None

    async def act(push: MetricsPush) -> None:
        assert await push._step() == INTERVAL_S

    by_hand(bench, act)
    assert bench.requests == []


def test_metrics_that_are_larger_than_the_broker_takes_are_not_sent() -> None:
    bench = Bench(telemetry_max_bytes=10)

    async def act(push: MetricsPush) -> None:
        await push._step()
        assert await push._step() == 10.0

    by_hand(bench, act)
    assert len(bench.requests) == 1


def test_a_mistake_ends_the_pushing_alone(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(push_interval_ms=-5)

    async def run() -> None:
        push = MetricsPush(bench, lambda: 1 / 0, lambda: -0.5)  # type: ignore[arg-type, return-value]
        await asyncio.wait([push._task], timeout=10)
        assert push._has_ended
        await push.close(None)

    asyncio.run(run())
    assert "pushing metrics has failed, and ends" in caplog.text


# --- what is pushed -----------------------------------------------------------------------------------------


def window(*durations_us: int) -> Window:
    durations = Durations()
    for each in durations_us:
        durations.add(each / 1e6)
    return Window.of(durations)


def broker_of(connects: int, rtt: Window) -> BrokerStatistics:
    return BrokerStatistics(
        name="b:1",
        state="UP",
        waitresp_cnt=0,
        connects=connects,
        rtt=rtt,
        fetch_latency=window(4000),
        throttle=window(),
    )


def test_totals_differences_and_gauges() -> None:
    earlier = statistics(txmsgs=3, brokers={"b:1": broker_of(1, window(2000))})
    now = statistics(txmsgs=10, age=4_000_000, brokers={"b:1": broker_of(3, window(2000, 8000))})
    for is_delta, sent, connects in ((True, 7, 2), (False, 10, 3)):
        points = standard_metrics(now, earlier, {"b:1": 3}, ["*"], is_delta=is_delta)
        found = {point.name.removeprefix(PRODUCER): point for point in points}
        assert found["record.send.total"].value == sent
        assert found["record.send.total"].kind is (MetricKind.DELTA if is_delta else MetricKind.TOTAL)
        assert found["connection.creation.total"].value == connects
        assert found["connection.creation.rate"].value == 1.0
        latency = found["node.request.latency.avg"]
        assert (latency.value, latency.labels, latency.kind) == (8.0, (("node_id", "3"),), MetricKind.GAUGE)


def test_only_what_is_asked_for() -> None:
    names = [PRODUCER + "connection.", PRODUCER + "record.send.total"]
    points = standard_metrics(statistics(), None, {}, names, is_delta=True)
    assert {point.name.removeprefix(PRODUCER) for point in points} == {
        "connection.creation.total",
        "connection.creation.rate",
        "record.send.total",
    }


def test_a_consumer_in_its_group() -> None:
    stats = statistics(
        type="consumer",
        rxmsgs=5,
        cgrp=GroupStatistics(group_id="g", member_id="m", state="up", assignment_size=2),
        partitions={
            TopicPartition("t", 1): PartitionStatistics(consumer_lag=9),
            TopicPartition("t", 2): PartitionStatistics(),
        },
        brokers={"b:1": broker_of(1, window())},
    )
    points = standard_metrics(stats, None, {}, ["*"], is_delta=False)
    found = {point.name.removeprefix("org.apache.kafka.consumer."): point for point in points}
    assert found["coordinator.assigned.partitions"].value == 2
    assert found["fetch.manager.records.consumed.total"].value == 5
    assert found["fetch.manager.fetch.latency.max"].value == 4.0
    lags = [point for point in points if point.name.endswith("records.lag")]
    assert [(point.value, dict(point.labels)) for point in lags] == [(9, {"partition": "1", "topic": "t"})]
