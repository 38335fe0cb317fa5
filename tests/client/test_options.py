"""Tests of client options as keyword arguments: they match the settings tables and have descriptions."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.client import (
    AdminOptions,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    ConsumerOptions,
    ProducerOptions,
)
from penstock.client.config import ClientConfig, ConsumerConfig, ProducerConfig, known_names
from penstock.client.options import documented
from penstock.client.security.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = {
    "bootstrap_servers", "key_serializer", "value_serializer", "key_deserializer", "value_deserializer",
}  # fmt: skip
"""Options that are explicit constructor arguments, so that type checkers infer the record types."""

KINDS = [(AdminOptions, ClientConfig), (ProducerOptions, ProducerConfig), (ConsumerOptions, ConsumerConfig)]


@pytest.mark.parametrize(("options", "config"), KINDS)
def test_there_is_a_keyword_for_every_setting(options: type, config: type[ClientConfig]) -> None:
    settings = {name.replace(".", "_") for name in [*known_names(config), *OPTIONS]}
    assert set(documented(options.__name__)) == settings - ARGUMENTS
    assert set(typing.get_type_hints(options, localns=NAMES)) == settings - ARGUMENTS


NAMES = {"ssl": __import__("ssl")}
for _module, _name in (
    ("penstock.client.assignors", "Assignor"),
    ("penstock.security.secrets", "Secret"),
    ("penstock.client", "Statistics"),
):
    NAMES[_name] = getattr(__import__(_module, fromlist=[_name]), _name)


@pytest.mark.parametrize(("options", "config"), KINDS)
def test_types_fit_what_is_read(options: type, config: type[ClientConfig]) -> None:
    """The default of each setting has its keyword's type, and every listed literal is accepted."""
    hints = typing.get_type_hints(options, localns=NAMES)
    for option in fields(config):
        if not option.metadata or option.name in ARGUMENTS:
            continue
        hint = hints[option.name]
        parse: Callable[[object], object] = option.metadata["parse"]
        kinds = {get_origin(kind) or kind for kind in (get_args(hint) or (hint,))}
        for words in [hint, *get_args(hint)]:
            if get_origin(words) is Literal:
                for word in get_args(words):
                    parse(word)
        if option.type in ("int", "float", "bool", "str"):
            plain = {"int": int, "float": float, "bool": bool, "str": str}[option.type]
            assert plain in kinds or any(get_origin(one) is Literal for one in [hint, *get_args(hint)]), (
                option.name
            )
        for alias in option.metadata["aliases"]:
            if alias != "bootstrap.servers":
                assert hints[alias.replace(".", "_")] == hint, alias


@pytest.mark.parametrize(("options", "config"), KINDS)
def test_every_option_is_described_also_by_help(options: type, config: type[ClientConfig]) -> None:
    for name, (kind, text) in documented(options.__name__).items():
        assert kind
        assert text.endswith((".", ":", "librdkafka", "Java")), name
        assert f"    {name}: " in (options.__doc__ or "")


@pytest.mark.parametrize("client", [Admin, AsyncAdmin, Consumer, AsyncConsumer, Producer, AsyncProducer])
def test_clients_name_their_options(client: type) -> None:
    kind = client.__name__.removeprefix("Async")
    options = inspect.signature(client).parameters["options"]
    assert options.annotation == f"Unpack[{kind}Options]"
    assert f"penstock.client.{kind}Options" in (client.__doc__ or "")


def test_settings_of_the_broker_are_those_of_its_tables() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import write_broker_settings as tool
    finally:
        sys.path.remove(str(ROOT / "tools"))
    assert tool.TARGET.read_text(encoding="utf-8") == tool.text(), "run python tools/write_broker_settings.py"
    from penstock.broker.config.keyword_settings import BrokerSettings

    keywords = set(BrokerSettings.__annotations__)
    assert {"num_partitions", "log_retention_ms", "penstock_kept_state_bytes_max"} <= keywords
    assert {name.replace("_", ".") for name in keywords} <= BROKER_KEYS.keys()
    assert inspect.signature(Broker).parameters["settings"].annotation == "Unpack[BrokerSettings]"


def test_clients_do_not_load_what_only_editors_look_at() -> None:
    clients = "penstock.client.blocking.producer, penstock.client.blocking.consumer, penstock.broker.broker"
    unused = "('client.options', 'keyword_settings', '.moments')"
    program = f"import sys, {clients}\nprint([name for name in sys.modules if name.endswith({unused})])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_dotted_names_are_keywords_too() -> None:
    dotted: dict[str, Any] = {"bootstrap.servers": "localhost:1", "linger.ms": "5", "compression.type": "lz4"}
    for producer in (Producer(**dotted), Producer(config=dotted)):
        assert repr(producer) == "<Producer of localhost:1>"
        producer.close()
