"""Penstock has the public names, arguments and options of three other clients, or names a replacement.

The names are read from the other clients' modules, so that the tests notice what a new release adds.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock.client
from compat.peers import need_module
from compat.test_broker_clients import pytestmark
from penstock.client import AsyncAdmin, AsyncConsumer, AsyncProducer, Delivery, NewTopic
from penstock.client.config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    ShareConsumerConfig,
    known_names,
)
from penstock.client.security.options import INERT, OPTIONS
from penstock.common.habits.table import advice
from penstock.model import Record, RecordMetadata, TopicPartition

__all__ = ["pytestmark"]

kafka = need_module("kafka")
aiokafka = need_module("aiokafka")
confluent_kafka = need_module("confluent_kafka")

OURS: dict[str, Any] = {
    "Producer": penstock.Producer,
    "Consumer": penstock.Consumer,
    "Admin": penstock.Admin,
    "AsyncProducer": AsyncProducer,
    "AsyncConsumer": AsyncConsumer,
    "AsyncAdmin": AsyncAdmin,
    "Delivery": Delivery,
    "Record": Record,
    "RecordMetadata": RecordMetadata,
    "TopicPartition": TopicPartition,
    "NewTopic": NewTopic,
}


def theirs() -> list[tuple[str, Any]]:
    """Return pairs of a Penstock class name and the corresponding class of another client."""
    from aiokafka.admin import AIOKafkaAdminClient
    from confluent_kafka import aio
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin import NewTopic as TheirNewTopic
    from kafka.consumer.fetcher import ConsumerRecord
    from kafka.producer.future import FutureRecordMetadata
    from kafka.producer.future import RecordMetadata as TheirMetadata

    return [
        ("Producer", kafka.KafkaProducer),
        ("Consumer", kafka.KafkaConsumer),
        ("Admin", kafka.KafkaAdminClient),
        ("Delivery", FutureRecordMetadata),
        ("Record", ConsumerRecord),
        ("Record", aiokafka.ConsumerRecord),
        ("RecordMetadata", TheirMetadata),
        ("AsyncProducer", aiokafka.AIOKafkaProducer),
        ("AsyncConsumer", aiokafka.AIOKafkaConsumer),
        ("AsyncAdmin", AIOKafkaAdminClient),
        ("Producer", confluent_kafka.Producer),
        ("Producer", confluent_kafka.SerializingProducer),
        ("Consumer", confluent_kafka.Consumer),
        ("Consumer", confluent_kafka.DeserializingConsumer),
        ("Admin", AdminClient),
        ("AsyncProducer", aio.AIOProducer),
        ("AsyncConsumer", aio.AIOConsumer),
        ("Record", confluent_kafka.Message),
        ("TopicPartition", confluent_kafka.TopicPartition),
        ("NewTopic", TheirNewTopic),
    ]


PAIRS = theirs()
LABELS = [f"{kind.__module__}.{kind.__name__}" for _, kind in PAIRS]

PARAMETERS_IN_TEXT = re.compile(r"function:{1,2} (\w+)\((.*)\)")
WITHOUT_A_NAME = {"self", "args", "kwargs", "configs", "conf", "config", "f", "cls"}


def arguments_of(kind: type, name: str) -> set[str]:
    """Return a method's argument names, from its signature or the start of its docstring."""
    call = getattr(kind, name)
    text = (getattr(call, "__doc__", "") or "").strip()
    described = PARAMETERS_IN_TEXT.match(text.removeprefix(".. py:"))
    try:
        found = set(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        found = set()
    if described:
        found |= {
            each.strip(" []").partition("=")[0] for each in described.group(2).split(",") if each.strip(" []")
        }
    return found - WITHOUT_A_NAME


def cases() -> Iterator[tuple[str, str, str]]:
    """Yield a Penstock class, a method that it shares with another client, and an argument there."""
    for place, kind in PAIRS:
        for name in public(kind):
            ours = inspect.getattr_static(OURS[place], name, None)
            if callable(getattr(kind, name)) and inspect.isfunction(ours):
                for argument in arguments_of(kind, name):
                    yield place, name, argument


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize(("place", "kind"), PAIRS, ids=LABELS)
def test_every_name_exists_or_is_answered(place: str, kind: type) -> None:
    ours = OURS[place]
    silent = [name for name in public(kind) if not hasattr(ours, name) and advice(place, name) is None]
    assert silent == []


@pytest.mark.parametrize("place", sorted(OURS))
def test_every_argument_exists_or_is_answered(place: str) -> None:
    silent = {
        f"{name}({argument}=)"
        for owner, name, argument in cases()
        if owner == place
        and argument not in inspect.signature(getattr(OURS[place], name)).parameters
        and advice(f"{place}.{name}", argument) is None
    }
    assert silent == set()


@pytest.mark.parametrize(
    "module",
    [
        "kafka",
        "kafka.admin",
        "aiokafka",
        "aiokafka.admin",
        "confluent_kafka",
        "confluent_kafka.admin",
        "confluent_kafka.aio",
    ],
)
def test_every_name_of_their_modules_exists_or_is_answered(module: str) -> None:
    found = __import__(module, fromlist=["x"])
    names = [
        name
        for name in getattr(found, "__all__", None) or dir(found)
        if not name.startswith("_") and name not in FOREIGN
    ]
    assert len(names) > 2
    silent = [name for name in names if not hasattr(penstock, name) and advice("penstock", name) is None]
    assert silent == []


FOREIGN = {
    "Any",
    "Dict",
    "List",
    "Optional",
    "Set",
    "Tuple",
    "Union",
    "concurrent",
    "string_type",
    "warnings",
}
"""Names that the other clients' modules import from elsewhere, which are not part of their API."""


def options() -> dict[str, set[str]]:
    """Return the names of all configuration options, keyed by client library."""
    from aiokafka.admin import AIOKafkaAdminClient

    python: set[str] = set()
    for kind in (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient):
        python |= set(kind.DEFAULT_CONFIG)
    asynchronous: set[str] = set()
    for kind in (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer, AIOKafkaAdminClient):
        asynchronous |= set(inspect.signature(kind.__init__).parameters) - {"self"}
    return {"kafka-python": python, "aiokafka": asynchronous, "librdkafka": librdkafka_options()}


def librdkafka_options() -> set[str]:
    """Return the configuration options that confluent-kafka's copy of librdkafka reports."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka*"))))
    found: set[str] = set()
    for kind in ("rd_kafka_conf", "rd_kafka_topic_conf"):
        make, dump = getattr(library, f"{kind}_new"), getattr(library, f"{kind}_dump")
        make.restype, dump.restype = ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)
        dump.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
        count = ctypes.c_size_t()
        texts = dump(make(), ctypes.byref(count))
        found |= {texts[at].decode() for at in range(0, count.value, 2)}
    return found


@pytest.mark.parametrize("library", ["kafka-python", "aiokafka", "librdkafka"])
def test_every_option_exists_or_is_answered(library: str) -> None:
    known = {
        name
        for config in (ProducerConfig, ConsumerConfig, ShareConsumerConfig, ClientConfig)
        for name in known_names(config)
    }
    names = options()[library]
    assert len(names) > 40
    silent = [
        name
        for name in sorted(names)
        if name.replace("_", ".") not in known | {*OPTIONS, *INERT}
        and advice("options", name.replace(".", "_")) is None
    ]
    assert silent == []
