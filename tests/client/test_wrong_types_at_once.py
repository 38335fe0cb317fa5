"""Tests that values of wrong types are refused at once, by argument name, while no broker can be reached.

The tests cover each argument of every public call of the three asyncio clients, on which the blocking ones
are built.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock import Admin, Broker, Producer
from penstock.client import AsyncAdmin, AsyncConsumer, AsyncProducer, TransactionCoordinates
from penstock.errors import ConfigError, NetworkError, PenstockError

AT_ONCE_S = 0.1

for imported in ("client.produce.columns", "cloudevents.write_record", "cloudevents.event"):
    importlib.import_module(f"penstock.{imported}")  # the first call takes longer for it


class Odd:
    """An object that is no valid value for any argument."""

    def __repr__(self) -> str:
        return "<odd>"


FITTING: dict[str, Any] = {
    "acls": [],
    "commit": True,
    "coordinates": TransactionCoordinates("x", 1, 0),
    "coordinator_epoch": 0,
    "count": 1,
    "data": pa.table({"value": ["x"]}),
    "entity": {"user": "u"},
    "filters": [],
    "group": "g",
    "group_id": "g",
    "group_ids": ["g"],
    "name": "t",
    "names": ["t"],
    "offset": 0,
    "offsets": {("t", 0): 0},
    "older_than_ms": 1.0,
    "oldest_ms": 0,
    "partition": ("t", 0),
    "partitions": [("t", 0)],
    "password": "p",
    "producer_epoch": 0,
    "producer_id": 1,
    "questions": {("t", 0): -1},
    "quotas": {},
    "start_offset": 0,
    "times": {("t", 0): 0},
    "topic": "t",
    "topics": ["t"],
    "transactional_id": "x",
    "transactional_ids": ["x"],
    "user": "u",
}
"""A dict from argument name to a valid value."""

BETWEEN_PARTS = {
    "append_encoded",
    "begin_leaving",
    "encode_columns",
    "get_ready",
    "hold",
    "iterate_now",
    "leave_transaction",
    "part_now",
    "poll_arrow_now",
    "poll_now",
    "release",
    "send_when_possible",
    "try_send",
    "wait",
}
"""Public methods that only other parts of a client call; the tests leave them out."""

WITHOUT_EFFECT = {"mode", "key_mapper", "event_format"}
"""Arguments that only matter with `event`, whose own check comes first."""

UNQUOTED = {"password", "value", "key"}
"""Arguments whose errors do not quote the value: a password is secret, of keys only the type is named."""

BESIDE: dict[str, dict[str, Any]] = {key: {"topic": "t"} for key in ("set", "delete", "append", "subtract")}
"""A dict from an argument of `alter_config` to the other arguments that it needs."""


def arguments() -> Iterator[tuple[type, str, str]]:
    for kind in (AsyncAdmin, AsyncConsumer, AsyncProducer):
        for name, call in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("_") or name in BETWEEN_PARTS:
                continue
            for parameter in list(inspect.signature(call).parameters)[1:]:
                if parameter not in WITHOUT_EFFECT:
                    yield kind, name, parameter


async def refusal(kind: Any, name: str, wrong: str) -> tuple[BaseException | None, float]:
    options: dict[str, Any] = {"group_id": "g"} if kind is AsyncConsumer else {}
    if kind is AsyncProducer and ("transaction" in name or name == "send_offsets"):
        options = {"transactional_id": "x"}
    client = kind("localhost:1", **options)
    if kind is AsyncConsumer and name not in ("assign", "subscribe"):
        client.assign([("t", 0)])
    call = getattr(client, name)
    positional: list[Any] = []
    named: dict[str, Any] = dict(BESIDE.get(wrong, {}))
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional = [Odd()]
        elif parameter.name == wrong:
            named[wrong] = Odd()
        elif parameter.default is parameter.empty:
            named[parameter.name] = FITTING[parameter.name]
    begun = time.perf_counter()
    error: BaseException | None = None
    try:
        async with asyncio.timeout(5):
            made = call(*positional, **named)
            if inspect.isawaitable(made):
                await made
    except Exception as raised:
        error = raised
    took_s = time.perf_counter() - begun
    if not (kind is AsyncConsumer and name == "close"):
        await client.close()
    return error, took_s


@pytest.mark.alone
@pytest.mark.parametrize(("kind", "name", "wrong"), list(arguments()))
def test_each_argument(kind: type, name: str, wrong: str) -> None:
    for _ in range(5):  # the machine may be busy with something else, but not each time
        error, took_s = asyncio.run(refusal(kind, name, wrong))
        if took_s < AT_ONCE_S:
            break
    assert isinstance(error, PenstockError), f"{name}({wrong}=) raises {error!r}"
    assert not isinstance(error, NetworkError), f"{name}({wrong}=) looks for a broker first"
    assert "odd" in str(error).lower() or wrong in UNQUOTED, error
    assert took_s < AT_ONCE_S


def test_a_broker_that_the_cluster_does_not_have() -> None:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t")
        calls: list[Callable[[int], object]] = [
            lambda number: admin.describe_producers([("t", 0)], broker=number),
            lambda number: admin.describe_config(broker=number),
            lambda number: admin.describe_log_dirs(number),
            lambda number: admin.alter_config(broker=number, set={"message.max.bytes": 5_000}),
        ]
        for call in calls:
            with pytest.raises(ConfigError, match="broker is -7: the id of a broker is needed, 0 or more"):
                call(-7)
            with pytest.raises(ConfigError, match="there is no broker 99 in the cluster; it has 1"):
                call(99)


def test_a_broker_is_given_a_directory_and_a_clock() -> None:
    odd: Any = Odd()
    with pytest.raises(ConfigError, match="data_dir is <odd>: the path of a directory is needed"):
        Broker(odd)
    with pytest.raises(ConfigError, match="clock is <odd>: an object with now_ms"):
        Broker(clock=odd)


@pytest.mark.parametrize("name", ["value", "key", "timestamp", "headers", "partition"])
def test_blocking_producers_refuse_before_they_look_for_a_broker(name: str) -> None:
    producer = Producer("localhost:1")
    given: dict[str, Any] = {name: Odd()}
    with pytest.raises(PenstockError, match=r"(?i)odd"):
        producer.send("t", **given)
    odd: Any = Odd()
    with pytest.raises(PenstockError, match="a pyarrow Table or RecordBatch is needed, not Odd"):
        producer.send_arrow("t", odd)
    producer.close()
