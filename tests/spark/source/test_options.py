from __future__ import annotations

import pickle
import re

import pytest

from for_each import for_each
from penstock.errors import ConfigError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.spark.java_client import NO_EFFECT, REFUSED
from penstock.spark.source.options import Bound, Selection, read_options, schema_options, write_options

HERE = {"kafka.bootstrap.servers": "localhost:9092"}
READ = {**HERE, "subscribe": "flights"}


def batch(**options: str):
    return read_options({**READ, **options}, streaming=False)


def stream(**options: str):
    return read_options({**READ, **options}, streaming=True)


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    of_batch, of_stream = batch(), stream()
    assert of_batch.start == Bound("startingOffsets", everywhere=EARLIEST)
    assert of_stream.start == Bound("startingOffsets", everywhere=LATEST)
    assert of_batch.end == of_stream.end == Bound("endingOffsets", everywhere=LATEST)
    assert of_batch.fail_on_data_loss
    assert not of_batch.include_headers
    assert of_batch.cloudevents is None
    assert of_batch.limits.max_rows is None
    assert pickle.loads(pickle.dumps(of_stream)) == of_stream


@pytest.mark.parametrize("name", ["kafka.bootstrap.servers", "bootstrap.servers", "bootstrapservers"])
def test_brokers_may_be_named_in_three_ways(name: str) -> None:
    assert read_options({name: "a:1", "subscribe": "t"}, streaming=True).bootstrap_servers == "a:1"


def test_names_arrive_in_lower_case_and_client_settings_lose_their_prefix() -> None:
    options = batch(maxoffsetspertrigger="7", includeheaders="TRUE", **{"kafka.fetch.max.wait.ms": "10"})
    assert options.limits.max_rows == 7
    assert options.include_headers
    assert options.client == {"fetch.max.wait.ms": "10"}


def test_selections() -> None:
    assert batch(subscribe="b, a,,b").selection == Selection(topics=("a", "b"))
    by_pattern = read_options({**HERE, "subscribePattern": "fl.*s"}, streaming=True).selection
    assert by_pattern.matches("flights")
    assert not by_pattern.matches("flights2")
    assigned = read_options({**HERE, "assign": '{"t": [1, 0], "s": [2]}'}, streaming=True).selection
    assert assigned.partitions == (TopicPartition("s", 2), TopicPartition("t", 0), TopicPartition("t", 1))


def test_offsets_and_timestamps() -> None:
    assert stream(startingOffsets="Earliest").start.everywhere == EARLIEST
    by_offset = stream(startingOffsets='{"flights": {"0": 23, "1": -1, "2": -2}}').start
    assert by_offset.offsets == {
        TopicPartition("flights", 0): 23,
        TopicPartition("flights", 1): LATEST,
        TopicPartition("flights", 2): EARLIEST,
    }
    by_time = batch(startingOffsetsByTimestamp='{"flights": {"0": 1000}}', startingOffsets="earliest").start
    assert by_time.timestamps == {TopicPartition("flights", 0): 1000}
    assert not by_time.late_means_latest
    assert (
        batch(startingTimestamp="5", startingOffsetsByTimestamp='{"flights": {"0": 9}}').start.everywhere == 5
    )
    assert batch(endingTimestamp="5").end.late_means_latest
    assert batch(startingTimestamp="5", startingOffsetsByTimestampStrategy="latest").start.late_means_latest


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("10s", 10_000), ("15m", 900_000), ("2 h", 7_200_000), ("7", 7)]
)
def test_durations(text: str, ms: int) -> None:
    assert stream(maxTriggerDelay=text).limits.max_trigger_delay_ms == ms


def test_cloudevents_options() -> None:
    assert schema_options({**READ, "cloudevents": "columns"}) == (
        False,
        batch(cloudevents="columns").cloudevents,
    )
    chosen = batch(
        cloudevents="columns", **{"cloudevents.strict": "false", "cloudevents.invalid": "drop"}
    ).cloudevents
    assert chosen is not None
    assert (chosen.profile, chosen.invalid, chosen.raw) == ("lenient", "drop", "invalid")


REFUSALS = {
    "misspelt": ({"startingOfsets": "earliest"}, "did you mean 'startingOffsets'"),
    "filters": ({"pushFilters": "true"}, "not offered: Spark takes what one query filtered"),
    "a condition": ({"where": "length(value) > 3"}, "cannot decide a function: LENGTH"),
    "not ours at all": ({"xyzzy": "1"}, "start with 'kafka.'"),
    "a path": ({"path": "x"}, "take no path"),
    "Java classes": ({"kafka.key.deserializer": "x"}, "cast the column"),
    "two selections": ({"assign": '{"t":[0]}'}, "assign and subscribe contradict"),
    "two brokers": ({"bootstrap.servers": "other:1"}, "name different brokers"),
    "empty subscribe": ({"subscribe": " , "}, "names no topic"),
    "not JSON": ({"startingOffsets": "first"}, "takes JSON like"),
    "offset below": ({"startingOffsets": '{"t":{"0":-3}}'}, "does not fit"),
    "offset no number": ({"startingOffsets": '{"t":{"0":true}}'}, "does not fit"),
    "partition no number": ({"startingOffsets": '{"t":{"x":1}}'}, "does not fit"),
    "no partitions": ({"startingOffsets": "{}"}, "names no partition"),
    "latest start": ({"startingOffsets": "latest"}, "reads nothing in a batch"),
    "latest start by number": ({"startingOffsets": '{"t":{"0":-1}}'}, "reads nothing in a batch"),
    "earliest end": ({"endingOffsets": "earliest"}, "reads nothing"),
    "minimum above maximum": ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "9 is above"),
    "zero": ({"maxOffsetsPerTrigger": "0"}, "whole number from 1"),
    "duration": ({"maxTriggerDelay": "soon"}, "500ms"),
    "flag": ({"failOnDataLoss": "yes"}, "'true' or 'false'"),
    "choice": ({"cloudevents": "rows"}, "one of off, columns"),
    "part without whole": ({"cloudevents.raw": "all"}, "needs the option cloudevents"),
    "two profiles": (
        {"cloudevents": "columns", "cloudevents.strict": "true", "cloudevents.profile": "lenient"},
        "contradict each other",
    ),
}


@for_each(REFUSALS)
def test_refusals_say_what_is_wrong(case: str) -> None:
    options, message = REFUSALS[case]
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        batch(**options)


def test_a_stream_has_no_end_and_a_query_needs_broker_and_topic() -> None:
    with pytest.raises(ConfigError, match="endingOffsets means nothing in a streaming query"):
        stream(endingOffsets="latest")
    with pytest.raises(ConfigError, match="where is for batch queries"):
        stream(where="partition = 1")
    with pytest.raises(ConfigError, match="which broker"):
        read_options({"subscribe": "t"}, streaming=True)
    with pytest.raises(ConfigError, match="what to read"):
        read_options(HERE, streaming=True)
    with pytest.raises(ConfigError, match="no regular expression"):
        read_options({**HERE, "subscribePattern": "("}, streaming=True)


def test_writing() -> None:
    options = write_options({**HERE, "topic": "t", "checkpointlocation": "x", "kafka.linger.ms": "5"})
    assert (options.topic, options.client) == ("t", {"linger.ms": "5"})
    assert write_options(HERE).topic is None
    with pytest.raises(ConfigError, match="subscribe is an option for reading"):
        write_options({**HERE, "subscribe": "t"})


def test_offsets_are_committed_to_a_group_that_is_named() -> None:
    group = {**READ, "kafka.group.id": "g"}
    assert read_options({**group, "commitOffsets": "true"}, streaming=True).commit_group == "g"
    assert read_options(group, streaming=True).commit_group is None
    for options, streaming, message in (
        ({**READ, "commitOffsets": "true"}, True, "commitOffsets needs the option kafka.group.id"),
        ({**group, "commitOffsets": "true"}, False, "nothing in a batch query"),
        ({**group, "commitOffsets": "true", "protocol": "0.7"}, True, "nothing with protocol 0.7"),
        ({**group, "commitOffsets": "maybe"}, True, "'true' or 'false'"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_options(options, streaming=streaming)


def test_an_outage_has_a_limit() -> None:
    assert read_options(READ, streaming=True).max_broker_outage_ms == 2 * 3_600_000
    assert read_options({**READ, "maxBrokerOutage": "90s"}, streaming=True).max_broker_outage_ms == 90_000
    with pytest.raises(ConfigError, match="maxBrokerOutage takes a duration"):
        schema_options({**READ, "maxBrokerOutage": "long"})


def test_options_of_the_sink_that_writes_exactly_once() -> None:
    base = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
    plain = write_options(base)
    assert (plain.exactly_once, plain.job) == (False, None)
    once = write_options({**base, "exactlyonce": "TRUE", "transactionalidprefix": "p", "sinkstopic": "s"})
    assert (once.exactly_once, once.transactional_id_prefix, once.state_topic) == (True, "p", "s")
    job = write_options({**base, "exactlyonce": "true", "txnappid": "a", "txnversion": "7"})
    assert job.job == ("a", 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"txnappid": "a", "txnversion": "1"}, "txnAppId means something only"),
        ({"faiLondataloss": "false"}, "failOnDataLoss means something only"),
        ({"exactlyonce": "true", "txnappid": "a"}, "belong together"),
        ({"exactlyonce": "true", "txnversion": "1"}, "belong together"),
        ({"exactlyonce": "true", "txnappid": "a", "txnversion": "-1"}, "txnVersion takes a whole number"),
        ({"exactlyonce": "true", "transactionalidprefix": ""}, "transactionalIdPrefix is empty"),
        ({"exactlyonce": "true", "kafka.transactional.id": "x"}, "kafka.transactional.id cannot be set"),
        ({"subscribe": "x"}, "an option for reading; the sink takes: topic, exactlyOnce"),
    ],
)
def test_contradictions_of_the_sink(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        write_options({"kafka.bootstrap.servers": "h:1", "topic": "t", **options})


@for_each(NO_EFFECT)
def test_settings_of_java_clients_without_an_effect_here_stop_no_query(name: str) -> None:
    given = {"kafka.bootstrap.servers": "h:1", f"kafka.{name}": "anything at all"}
    assert read_options({**given, "subscribe": "t"}, streaming=True).client == {}
    assert write_options({**given, "topic": "t"}).client == {}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_of_java_clients_that_would_change_rows_are_refused(name: str) -> None:
    given = {"kafka.bootstrap.servers": "h:1", name: "anything at all"}
    with pytest.raises(ConfigError, match=f"{name} cannot be set: {re.escape(REFUSED[name])}"):
        read_options({**given, "subscribe": "t"}, streaming=True)
    with pytest.raises(ConfigError, match=f"{name} cannot be set"):
        write_options({**given, "topic": "t"})
