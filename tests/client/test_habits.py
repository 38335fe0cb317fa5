"""Tests of names typed from habit of another Kafka client: the error says what to type instead.

Other code must not change. `tests/compat/test_habits_of_clients.py` tries every public name and argument of
three other clients.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

import penstock
import penstock.client
from for_each import for_each
from penstock import Admin, AsyncConsumer, AsyncProducer, Broker, Consumer, Producer, Record, TopicPartition
from penstock import errors as errors_module
from penstock.client import AsyncAdmin, Delivery, NewTopic
from penstock.client.addresses import parse_address, what_to_look_at
from penstock.client.config import ConsumerConfig, ProducerConfig
from penstock.client.fetch.fetched_records import Records
from penstock.common.habits.table import advice, table
from penstock.errors import CallError, ConfigError, KafkaError, NetworkError, PenstockError, UnknownNameError
from penstock.model import RecordMetadata, TimestampType
from penstock.testing import Faults, KafkaBroker, KafkaCluster

HERE: Any = "localhost:1"
CLASSES: dict[str, type] = {
    "Producer": Producer,
    "Consumer": Consumer,
    "ShareConsumer": penstock.ShareConsumer,
    "Admin": Admin,
    "Delivery": Delivery,
    "Record": Record,
    "records": Records,
    "RecordMetadata": RecordMetadata,
    "TopicPartition": TopicPartition,
    "NewTopic": NewTopic,
    "TopicDescription": penstock.client.TopicDescription,
    "ClusterDescription": penstock.client.ClusterDescription,
    "OffsetAndMetadata": penstock.client.OffsetAndMetadata,
    "Broker": Broker,
    "Cluster": penstock.Cluster,
    "KafkaBroker": KafkaBroker,
    "KafkaCluster": KafkaCluster,
    "Faults": Faults,
    "KafkaError": KafkaError,
    "PenstockError": PenstockError,
}
ASYNC: dict[str, type] = {
    "Producer": AsyncProducer,
    "Consumer": AsyncConsumer,
    "ShareConsumer": penstock.AsyncShareConsumer,
    "Admin": AsyncAdmin,
}
CALL_SECTIONS = [each for each in table() if each.partition(".")[0] in CLASSES and "." in each]
OTHER = {
    "groups of commands",
    "penstock",
    "commands",
    "arguments",
    "options",
    "read_topic",
    "write_topic",
    "errors",
}


@pytest.fixture(scope="module")
def objects() -> Iterator[dict[str, Any]]:
    return {
        "Producer": Producer(HERE),
        "Consumer": Consumer(HERE, group_id="g"),
        "Admin": Admin(HERE),
        "AsyncProducer": AsyncProducer(HERE),
        "AsyncConsumer": AsyncConsumer(HERE, group_id="g"),
        "AsyncAdmin": AsyncAdmin(HERE),
    }


# -- the table


def test_every_section_of_the_table_belongs_to_something_that_exists() -> None:
    for section in table():
        if section in OTHER or section.startswith("penstock "):
            continue
        name, _, method = section.partition(".")
        assert name in CLASSES, section
        if method:
            found = [kind for kind in (CLASSES[name], ASYNC.get(name)) if kind and hasattr(kind, method)]
            assert found, section


@for_each([each for each in table() if each in CLASSES])
def test_the_table_advises_against_no_name_that_exists(section: str) -> None:
    for name in table()[section]:
        assert not hasattr(CLASSES[section], name) or name in vars(object), f"{section}.{name} exists"


@for_each([each for each in table() if each.partition(".")[0] in CLASSES and "." in each])
def test_the_table_advises_against_no_argument_that_exists(section: str) -> None:
    name, _, method = section.partition(".")
    call = getattr(CLASSES[name], method, None) or getattr(ASYNC[name], method)
    taken = set(inspect.signature(call).parameters)
    assert taken.isdisjoint(table()[section])


def test_the_table_advises_against_no_option_that_exists() -> None:
    from penstock.client.config import known_names
    from penstock.client.security.options import INERT, OPTIONS

    known = {*known_names(ProducerConfig), *known_names(ConsumerConfig), *OPTIONS, *INERT}
    assert table()["options"].keys().isdisjoint(each.replace(".", "_") for each in known)


CALLS = re.compile(r"\b(producer|consumer|admin|delivery|broker|record|description|metadata)\.(\w+)")
MEANS = {
    "producer": AsyncProducer, "consumer": AsyncConsumer, "admin": AsyncAdmin, "delivery": Delivery,
    "broker": Broker, "record": Record, "metadata": RecordMetadata,
}  # fmt: skip
OF_TESTS = {"KafkaBroker", "KafkaBroker.create_topic", "Faults"}
"""Sections of the advice table in which the word `broker` means a `KafkaBroker`."""


def test_what_the_table_says_to_type_exists() -> None:
    """All methods, options and module names in the advice exist."""
    missing = []
    for section, entries in table().items():
        for name, said in entries.items():
            for noun, attribute in CALLS.findall(said):
                kind: Any = KafkaBroker() if noun == "broker" and section in OF_TESTS else MEANS.get(noun)
                if noun == "consumer" and section == "ShareConsumer":
                    kind = penstock.AsyncShareConsumer
                if kind is not None and not attribute.startswith("{") and not hasattr(kind, attribute):
                    missing.append(f"{section}: {name}: {noun}.{attribute}")
            for module, names in re.findall(r"from (penstock[\w.]*) import ((?:\w+, )*\w+)", said):
                imported = __import__(module, fromlist=["x"])
                missing += [f"{section}: {each}" for each in names.split(", ") if not hasattr(imported, each)]
            for page in re.findall(r"docs/[\w./-]+\.md", said):
                if not (Path(__file__).parents[2] / page).exists():
                    missing.append(page)
    assert missing == []


@for_each([each for each, said in table()["penstock"].items() if "{name}" in said])
def test_names_that_are_to_be_imported_from_elsewhere_are_there(name: str) -> None:
    said = advice("penstock", name)
    assert said is not None
    exec(said.removeprefix("write "), {})


# -- names


@pytest.mark.parametrize(
    "name", ["KafkaProducer", "AIOKafkaConsumer", "AdminClient", "NewTopic", "KafkaError"]
)
@pytest.mark.parametrize("package", ["penstock", "penstock.client"])
def test_a_package_says_what_to_import(package: str, name: str) -> None:
    if hasattr(__import__(package, fromlist=["x"]), name):
        return
    with pytest.raises(ImportError, match=f"cannot import name '{name}': .*import"):
        exec(f"from {package} import {name}", {})
    with pytest.raises(AttributeError, match=r"write from|errors are in"):
        getattr(__import__(package, fromlist=["x"]), name)


def test_a_misspelt_name_of_a_package_is_suggested() -> None:
    with pytest.raises(ImportError, match=r"did you mean Consumer"):
        exec("from penstock import Consummer", {})
    with pytest.raises(ImportError, match=r"cannot import name 'xyzzy'"):
        exec("from penstock import xyzzy", {})


def test_submodules_are_imported_as_ever() -> None:
    space: dict[str, Any] = {}
    exec("from penstock import errors, model", space)
    assert space["errors"] is errors_module


@pytest.mark.parametrize("name", ["Producer", "Consumer", "Admin"])
def test_every_name_of_the_table_is_answered(objects: dict[str, Any], name: str) -> None:
    for prefix in ("", "Async"):
        for typed in table()[name]:
            if hasattr(type(objects[prefix + name]), typed):
                continue
            with pytest.raises(UnknownNameError) as caught:
                getattr(objects[prefix + name], typed)
            assert (advice(prefix + name, typed) or "?") in str(caught.value)
            assert ("await " in str(caught.value)) <= bool(prefix) or "or await" in str(caught.value)


def test_a_name_that_no_client_has_is_suggested(objects: dict[str, Any]) -> None:
    with pytest.raises(AttributeError, match=r"did you mean flush"):
        objects["Producer"].flushh()
    with pytest.raises(AttributeError, match=r"'Producer' object has no attribute 'xyzzy'$"):
        objects["Producer"].xyzzy()


def test_what_python_looks_for_is_as_ever(objects: dict[str, Any]) -> None:
    producer = objects["Producer"]
    assert not hasattr(producer, "produce")
    assert not hasattr(producer, "__aenter__")
    assert not hasattr(Producer, "__aenter__")
    assert not hasattr(penstock, "KafkaProducer")
    with pytest.raises(AttributeError):
        producer.__deepcopy__  # noqa: B018
    with pytest.raises(AttributeError):
        producer._nothing  # noqa: B018
    record = Record("t", 0, 1, 2, penstock.model.TimestampType.CREATE_TIME, b"k", b"v", [])
    records = Records([record])
    for value in (TopicPartition("t", 0), record, records, NewTopic("t"), RecordMetadata("t", 0, 1, 2)):
        assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    assert records == [record]
    assert repr(records) == repr([record])
    for kind in (*CLASSES.values(), *ASYNC.values()):
        create_autospec(kind)
        Mock(spec=kind)
        inspect.getmembers(kind)


def test_records_say_that_they_are_several() -> None:
    records: Any = Records([])
    for name in ("error", "value", "items"):
        with pytest.raises(AttributeError, match=r"poll\(\) returns .*list"):
            getattr(records, name)


# -- calls


@for_each(
    [
        (lambda p, c, a: p.send("t", b"v", callback=print), "add_done_callback"),
        (lambda p, c, a: p.send("t", b"v", on_delivery=print), "add_done_callback"),
        (lambda p, c, a: p.send("t", b"v", timestamp_ms=1), "timestamp="),
        (lambda p, c, a: p.send("t", b"v", b"k"), "what follows the value has names"),
        (lambda p, c, a: p.send(topic="t", message=b"v"), "value="),
        (lambda p, c, a: p.send(topic_name="t"), 'producer.send\\("orders"'),
        (lambda p, c, a: p.send(), "missing a required argument: 'topic'"),
        (lambda p, c, a: p.send("t", b"v", xyzzy=[]), "it takes topic, value, key="),
        (lambda p, c, a: p.flush(timeout_ms=5), "timeout="),
        (lambda p, c, a: p.init_transactions(30), "default_api_timeout_ms"),
        (lambda p, c, a: p.send_offsets({}, group_id="g"), "group_metadata"),
        (lambda p, c, a: c.subscribe(pattern="x"), "re.compile"),
        (lambda p, c, a: c.subscribe(["t"], on_assign=print), "on_assigned="),
        (lambda p, c, a: c.subscribe(["t"], listener=print), "on_assigned=f and on_revoked=g"),
        (lambda p, c, a: c.poll(timeout=1.0), "timeout_ms=1000"),
        (lambda p, c, a: c.poll(num_messages=1), "max_records="),
        (lambda p, c, a: c.commit(message=object()), "record.offset \\+ 1"),
        (lambda p, c, a: c.commit(asynchronous=False), "commit_async"),
        (lambda p, c, a: c.pause(("t", 0), ("t", 1)), "one list"),
        (lambda p, c, a: c.seek(("t", 0, 5)), "the partition, then the offset"),
        (lambda p, c, a: a.create_topic("t", num_partitions=3), "partitions="),
        (lambda p, c, a: a.create_topics([], timeout_ms=3), "default_api_timeout_ms"),
        (lambda p, c, a: a.list_topics(timeout=3), "default_api_timeout_ms"),
        (lambda p, c, a: a.list_topics("t"), "describe_topics"),
        (lambda p, c, a: NewTopic("t", num_partitions=3), "partitions="),
        (lambda p, c, a: TopicPartition("t", 0, 5), "consumer.seek"),
        (lambda p, c, a: TopicPartition("t", 0, offset=5), "consumer.seek"),
        (lambda p, c, a: Consumer("t", bootstrap_servers="x"), "consumer.subscribe"),
        (lambda p, c, a: Consumer("t", "u", "v"), "consumer.subscribe"),
        (lambda p, c, a: Broker(datadir="x"), "data_dir="),
        (lambda p, c, a: penstock.read_topic("t", HERE, max_records=3), "limit="),
        (lambda p, c, a: penstock.write_topic(None, "t", HERE, key="a"), "fields="),
    ]
)
def test_arguments_are_answered(call: Any, said: str, objects: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=said) as caught:
        call(objects["Producer"], objects["Consumer"], objects["Admin"])
    assert isinstance(caught.value, CallError)


@pytest.mark.parametrize("kind", [Producer, AsyncProducer, Consumer, AsyncConsumer, Admin, AsyncAdmin])
def test_a_mapping_in_place_of_addresses_is_named(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"config="):
        kind({"bootstrap.servers": "x"})


def test_calls_for_asyncio_answer_when_they_are_awaited(objects: dict[str, Any]) -> None:
    producer, consumer, admin = (objects[f"Async{name}"] for name in ("Producer", "Consumer", "Admin"))

    async def ask() -> None:
        with pytest.raises(CallError, match=r"await producer.send"):
            await producer.send("t", b"v", on_delivery=print)
        with pytest.raises(CallError, match=r"await producer.send_and_wait"):
            await producer.send_and_wait("t", b"v", b"k")
        with pytest.raises(CallError, match=r"await consumer.poll"):
            await consumer.poll(timeout=1)
        with pytest.raises(CallError, match=r"default_api_timeout_ms"):
            await admin.create_topics([], timeout_ms=1)

    asyncio.run(ask())


def test_a_type_error_from_inside_stays_what_it_was() -> None:
    def broken(key: bytes | None, count: int) -> int:
        raise TypeError("mine")

    with (
        Broker() as broker,
        Producer(broker.bootstrap_servers, partitioner=broken) as producer,
        pytest.raises(TypeError, match=r"^mine$"),
    ):
        producer.send("t", b"v", key=b"k")


def test_signatures_have_nothing_that_catches_mistakes() -> None:
    for kind in (Producer, AsyncProducer):
        names = list(inspect.signature(kind.send).parameters)
        assert names[:4] == ["self", "topic", "value", "key"]
        assert not {"strays", "others"} & set(names)
        assert inspect.signature(kind.send).parameters["topic"].default is inspect.Parameter.empty
    for kind in (AsyncProducer, AsyncConsumer, AsyncAdmin):
        assert inspect.iscoroutinefunction(kind.close)


# -- statements


def test_statements_of_the_other_kind_of_client_are_answered(objects: dict[str, Any]) -> None:
    async def enter(client: Any) -> None:
        async with client:
            pass

    async def iterate(consumer: Any) -> None:
        async for _ in consumer:
            pass

    for name in ("Producer", "Consumer", "Admin"):
        with pytest.raises(AttributeError, match=f"async with Async{name}"):
            asyncio.run(enter(objects[name]))
        with pytest.raises(AttributeError, match=f"async with Async{name}"), objects[f"Async{name}"]:
            pass
    with pytest.raises(TypeError, match=r"for record in consumer"):
        asyncio.run(iterate(objects["Consumer"]))
    with pytest.raises(TypeError, match=r"async for record in consumer"):
        list(objects["AsyncConsumer"])
    with pytest.raises(TypeError, match=r"next\(iter\(consumer\)\)"):
        next(objects["Consumer"])


# -- times


@for_each(
    [
        (call, seconds)
        for call in ["poll", "poll_arrow", "poll_part"]
        for seconds in [1.0, 0.1, 0.25, 5.0, 30.0]
    ]
)
def test_polls_refuse_what_looks_like_seconds(call: str, seconds: float, objects: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"in milliseconds: write {seconds * 1000:g} for"):
        getattr(objects["Consumer"], call)(seconds)


@pytest.mark.parametrize("left_ms", [0, 0.0, 1, 3.7412839, 0.000123, 100.0, 1_000.0])
def test_polls_take_what_is_left_of_a_time(left_ms: float) -> None:
    with Broker() as broker, Consumer(broker.bootstrap_servers) as consumer:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t")
        consumer.assign([("t", 0)])
        assert consumer.poll(left_ms) == []


# -- options


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("consumer_timeout_ms", "poll\\(timeout_ms=1000\\)"),
        ("error_cb", "raise what is wrong"),
        ("enable.auto.offset.store", "enable_auto_commit=False"),
        ("securty.protocol", "did you mean 'security.protocol'"),
        ("sasl_mecanism", "did you mean 'sasl_mechanism"),
        ("bootstrap_server", "bootstrap_servers="),
        ("max_batch_size", "batch_size="),
    ],
)
def test_options_of_others_are_answered(name: str, said: str) -> None:
    for kind in (ProducerConfig, ConsumerConfig):
        with pytest.raises(ConfigError, match=said):
            kind.parse({}, {"bootstrap_servers": "h", name: "x"})


def test_options_in_spark_are_suggested_as_they_are_written_there() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("'kafka.securty.protocol'; did you mean 'kafka.security")
    ):
        ConsumerConfig.parse({"securty.protocol": "SSL"}, {"bootstrap_servers": "h"}, prefix="kafka.")
    with pytest.raises(ConfigError, match=re.escape("'kafka.sasl.mecanism'; did you mean 'kafka.sasl.mech")):
        ConsumerConfig.parse({"sasl.mecanism": "PLAIN"}, {"bootstrap_servers": "h"}, prefix="kafka.")
    with pytest.raises(ConfigError, match=r"'kafka.linger.ms' belongs to the producer"):
        ConsumerConfig.parse({"linger.ms": 5}, {"bootstrap_servers": "h"}, prefix="kafka.")


@pytest.mark.parametrize("scheme", ["http", "https", "HTTP"])
def test_a_web_address_is_no_broker(scheme: str) -> None:
    with pytest.raises(ConfigError, match=r"is a web address: Kafka's is host:port"):
        Producer(f"{scheme}://localhost:9092")


# -- what is offered under the name that others have


def test_topics_and_partitions_of_a_consumer() -> None:
    with Broker(num_partitions=3) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("orders", partitions=3)
        with Consumer(broker.bootstrap_servers, group_id="g") as consumer:
            assert consumer.subscription() == set()
            consumer.subscribe(["orders", "later"])
            assert consumer.subscription() == {"orders", "later"}
            assert consumer.partitions_for_topic("orders") == {0, 1, 2}
            consumer.subscribe("^ord.*")
            consumer.poll(100)
            assert consumer.subscription() == {"orders"}
            with pytest.raises(KafkaError, match=r"topic 'ordrs' does not exist; did you mean 'orders'"):
                consumer.partitions_for_topic("ordrs")
        with Consumer(broker.bootstrap_servers) as consumer:
            assert consumer.subscription() == set()


def test_a_missing_topic_says_why_it_stays_missing() -> None:
    patience: Any = {"topic_metadata_propagation_max_ms": 50}
    with Broker(auto_create_topics_enable=False) as broker:
        refused = pytest.raises(KafkaError, match=r"does not exist, and the broker does not create topics")
        with Producer(broker.bootstrap_servers, **patience) as producer, refused:
            producer.send("orders", b"v")
        with Consumer(broker.bootstrap_servers, **patience) as consumer:
            consumer.assign([("orders", 0)])
            with pytest.raises(KafkaError, match=r"does not exist; make it: penstock topic create"):
                consumer.poll(1_000)


def test_a_missing_partition_is_not_waited_for_as_a_missing_topic_is() -> None:
    """Sending to a missing topic waits for its creation.

    A missing partition of an existing topic raises an error after a moment, in which it may be added.
    """
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("orders")
        refused = pytest.raises(ConfigError, match=r"there is no partition 7")
        patience: Any = {"topic_metadata_propagation_max_ms": 3_600_000}
        with Producer(broker.bootstrap_servers, **patience) as producer, refused:
            producer.send("orders", b"v", partition=7)


# -- errors, brokers and clusters


KAFKA_ERROR = KafkaError(36, "TOPIC_ALREADY_EXISTS", "there is one")


@for_each(
    [
        ("error.code()", "write error.code, without brackets"),
        ("error.name()", "write error.name, without brackets"),
        ("error.str()", "write str(error)"),
        ("error.fatal()", "TransactionFatalError"),
        ("error.txn_requires_abort()", "TransactionAbortableError"),
        ("error.errno", "write error.code"),
        ("error.isRetriable()", "write error.retriable"),
        ("error.retriabl", "did you mean retriable?"),
        ("NetworkError('x').code", "except KafkaError as error"),
        ("NetworkError('x').retriable", "clients try again by themselves"),
        ("errors_module.KafkaTimeoutError", "from penstock.errors import RequestTimeoutError"),
        ("errors_module.TopicAlreadyExistsError", "error.name"),
        ("errors_module.KafkaErr", "did you mean KafkaError?"),
        ("KafkaBroker('x', 'y', 1, 2)", "3 at most"),
        ("KafkaBroker().produce", "producer.send"),
        ("KafkaBroker().get_bootstrap_server()", "broker.bootstrap_servers"),
        ("KafkaBroker().faults.add('Produce')", "broker.faults.fail"),
        ("KafkaBroker().faults.fail('Produce')", "'error'"),
        ("KafkaCluster(num_brokers=3)", "write brokers=3"),
        ("KafkaCluster().stop_broker(1)", "cluster.stop(1)"),
        ("KafkaCluster().bootstrap_server", "cluster.bootstrap_servers"),
        ("penstock.Cluster().kill_node(1)", "cluster.kill(1)"),
        ("penstock.Cluster(3, 'data', 'h', [1], [2])", "by name"),
    ]
)
def test_errors_brokers_and_clusters_say_what_to_type(typed: str, said: str) -> None:
    with pytest.raises(PenstockError, match=re.escape(said)):
        eval(typed, {**globals(), "error": KAFKA_ERROR})


def test_an_errors_code_and_name_are_a_number_and_text_for_all_else() -> None:
    again = pickle.loads(pickle.dumps(KAFKA_ERROR))
    assert (again.code, again.name, repr(again.code)) == (36, "TOPIC_ALREADY_EXISTS", "36")
    assert f"{KAFKA_ERROR.code:>4} {KAFKA_ERROR.name}" == "  36 TOPIC_ALREADY_EXISTS"
    assert not hasattr(KAFKA_ERROR, "errno")
    assert getattr(NetworkError("x"), "code", None) is None
    assert copy.copy(KAFKA_ERROR).code == 36


def test_a_name_that_is_missing_in_errors_ends_the_import_statement() -> None:
    with pytest.raises(ImportError, match="NetworkError"):
        exec("from penstock.errors import NoBrokersAvailable")


def test_send_encoded_says_what_it_is_for() -> None:
    with pytest.raises(CallError, match=r'write producer\.send\("orders"'):
        Producer(HERE).send_encoded("t", value=b"v")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("localhost:9092", "host= and port="),
        ("3.9", "as_version="),
        ("[::1]:9092", "host= and port="),
        (9092, "port="),
    ],
)
def test_what_is_no_directory_makes_none(given: Any, said: str) -> None:
    for make in (Broker, KafkaBroker, lambda data_dir: penstock.Cluster(3, data_dir)):
        with pytest.raises(ConfigError, match=said):
            make(given)


def test_a_cluster_of_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="a whole number is needed"):
        KafkaCluster("3")  # type: ignore[arg-type]


def test_the_name_of_a_topic_in_place_of_addresses_is_asked_about() -> None:
    unknown = NetworkError("x")
    unknown.__cause__ = socket.gaierror()
    assert "is 'orders' the name of a topic?" in what_to_look_at([parse_address("orders")], [unknown])
    for address, error in (
        ("orders:9093", unknown),
        ("kafka.example", unknown),
        ("kafka", NetworkError("x")),
    ):
        assert "is it running?" in what_to_look_at([parse_address(address)], [error])


def test_a_port_alone_is_no_address() -> None:
    with pytest.raises(ConfigError, match="write localhost:9092"):
        Producer("9092")


RECORD = Record("orders", 3, 7, 0, TimestampType.CREATE_TIME, b"k", b"v", ())


@pytest.mark.parametrize(
    ("value", "name", "said"),
    [
        (RECORD, "value", "Record['value'] is not there: write .value"),
        (RECORD, "error", "leave it out"),
        (RECORD, "valeu", "did you mean"),
        (TopicPartition("orders", 3), "topic", "write .topic"),
        (RecordMetadata("orders", 3, 7, 0), "offset", "write .offset"),
        (NewTopic("orders"), "name", "write .name"),
    ],
)
def test_a_value_in_brackets_says_how_it_is_written(value: Any, name: str, said: str) -> None:
    with pytest.raises(CallError, match=re.escape(said)):
        value[name]


def test_indexes_slices_and_unpacking_of_records_stay_those_of_tuples() -> None:
    topic, partition, *rest = RECORD
    assert (topic, partition, rest[0]) == (RECORD[0], RECORD[1], RECORD[2]) == ("orders", 3, 7)
    assert RECORD[:2] == ("orders", 3)
    assert RECORD[-1] == ()
    with pytest.raises(IndexError):
        RECORD[8]
    with pytest.raises(TypeError):
        RECORD[1.5]  # type: ignore[call-overload]
    assert pickle.loads(pickle.dumps(RECORD)) == RECORD == copy.copy(RECORD)
