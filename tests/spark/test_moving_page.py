"""Tests that the documentation of the connector's options agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

from for_each import for_each
from penstock.client.config import ProducerConfig
from penstock.errors import ConfigError
from penstock.spark.java_client import NO_EFFECT, REFUSED
from penstock.spark.source.brokers import client_config
from penstock.spark.source.landing.options import NAMES as LANDING_NAMES
from penstock.spark.source.options import READ_NAMES, SHARED_NAMES, WRITE_NAMES, read_options, write_options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "moving-from-the-kafka-connector.md"
TEXT = PAGE.read_text("utf-8")
OPTIONS, _, REST = TEXT.partition("## Every option")[2].partition("### Other settings")
SETTINGS, _, OURS = REST.partition("### Options that the connector does not have")
CLIENTS, _, SESSION = SETTINGS.partition("### Settings of the session")

SAMPLES = {
    "assign": '{"t":[0]}',
    "subscribe": "t",
    "subscribePattern": "t.*",
    "startingOffsets": '{"t":{"0":1}}',
    "startingOffsetsByTimestamp": '{"t":{"0":1}}',
    "endingOffsets": '{"t":{"0":1}}',
    "endingOffsetsByTimestamp": '{"t":{"0":1}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "failOnDataLoss": "false",
    "includeHeaders": "true",
    "maxTriggerDelay": "3m",
    "kafka.bootstrap.servers": "h:1",
    "kafka.isolation.level": "read_committed",
    "kafka.security.protocol": "PLAINTEXT",
}
"""Valid values of options; all other options are tested with 5."""


SILENT = (
    "kafka.bootstrap.servers",
    "subscribe",
    "kafka.group.id",
    "includeHeaders",
    "startingOffsetsByTimestampStrategy",
)


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


ROWS = [(names(name)[0], kinds.split(", "), here) for name, kinds, here, _ in rows(OPTIONS)]


def outcome(name: str, kind: str) -> str:
    """Return what the code does with an option: "refused", "no effect" or "taken"."""
    given = {"kafka.bootstrap.servers": "h:1", name: SAMPLES.get(name, "5")}
    plain = {"kafka.bootstrap.servers": "h:1"}
    try:
        if kind == "sink":
            found, before = write_options(given), write_options(plain)
            ProducerConfig.parse(found.client, {"bootstrap_servers": "h:1"})
            return "no effect" if found == before else "taken"
        if name not in ("assign", "subscribe", "subscribePattern"):
            given["subscribe"] = "t"
        streaming = kind == "stream"
        read = read_options(given, streaming=streaming)
        client_config("h:1", read.client)
        return (
            "no effect" if read == read_options({**plain, "subscribe": "t"}, streaming=streaming) else "taken"
        )
    except ConfigError:
        return "refused"


@for_each(ROWS)
def test_each_option_is_treated_as_the_page_says(name: str, kinds: list[str], here: str) -> None:
    each = {"source": ["batch", "stream"]}
    found = {outcome(name, one) for kind in kinds for one in each.get(kind, [kind])}
    if here == "refused":
        assert found == {"refused"}
    elif here == "no effect":
        assert found == {"no effect"}
    else:
        assert here in ("the same", "differs")
        # What is the default, or belongs to another option, changes nothing by itself.
        silent = name in SILENT
        assert "refused" not in found
        assert silent or found == {"taken"}


def test_options_for_batches_alone_are_refused_by_streams() -> None:
    for name, kinds, _ in ROWS:
        if kinds == ["batch"]:
            assert outcome(name, "stream") == "refused", name


def test_every_option_of_the_source_and_the_sink_is_on_the_page() -> None:
    ours = {name for name in names(OURS) if re.fullmatch(r"[\w.]+", name)}
    there = {name for name, _, _ in ROWS if not name.startswith("kafka.") or name in SHARED_NAMES}
    assert there | ours == {*READ_NAMES, *WRITE_NAMES, *SHARED_NAMES, *LANDING_NAMES}
    assert not there & ours


def test_settings_of_clients_without_an_effect_are_those_of_the_code() -> None:
    told = {name for first, here, _ in rows(CLIENTS) for name in names(first) if here == "no effect"}
    assert told | {"group.id"} == NO_EFFECT.keys()


def test_settings_of_clients_that_are_refused_are_those_of_the_code() -> None:
    told = {name for name, _, here in ROWS if here == "refused"}
    assert told == {*REFUSED, "kafka.transactional.id"}


def test_settings_of_the_session_are_named() -> None:
    told = {name for first, _ in rows(SESSION) for name in names(first)}
    assert {name for name in told if name.startswith("spark.kafka.consumer.cache.")} >= {
        f"spark.kafka.consumer.cache.{name}"
        for name in ("capacity", "timeout", "evictorThreadRunInterval", "jmx.enable")
    }
    assert "spark.kafka.producer.cache.timeout" in told
    assert "spark.kafka.clusters.${cluster}.auth.bootstrap.servers" in told
