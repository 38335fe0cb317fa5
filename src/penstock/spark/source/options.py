"""The options of the data source: their names, their meanings, and which of them exclude each other.

The names are those of Spark's Kafka source, so that a query can switch by changing its format name alone.
Spark passes the names in lower case and every value as text; error messages use the documented names.
Independent of brokers and Spark.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.common.suggestions import nearest
from penstock.errors import ConfigError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.printable import printable
from penstock.security.secrets import Secret, is_secret_name
from penstock.spark import value_options as value_names
from penstock.spark.exactly_once.place import DEFAULT_PREFIX, STATE_TOPIC
from penstock.spark.java_client import NO_EFFECT, REFUSED
from penstock.spark.option_values import (
    choice,
    count,
    duration_ms,
    flag,
    is_count,
    json_object,
    offsets_by_partition,
)
from penstock.spark.value_options import (
    REGISTRY_PREFIX,
    ValueOptions,
    WrittenField,
    read_value_options,
    write_value_options,
)

if TYPE_CHECKING:
    from penstock.spark.source.where.condition import Where

BOOTSTRAP_NAMES = ("kafka.bootstrap.servers", "bootstrap.servers", "bootstrapServers")
SELECTION_NAMES = ("assign", "subscribe", "subscribePattern")

READ_NAMES = (
    *SELECTION_NAMES,
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "where",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "maxBrokerOutage",
    "commitOffsets",
    "protocol",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "cloudevents",
    "cloudevents.profile",
    "cloudevents.strict",
    "cloudevents.invalid",
    "cloudevents.raw",
    "cloudevents.assumeStructured",
    *value_names.READ_NAMES,
)
EXACTLY_ONCE_NAMES = ("transactionalIdPrefix", "sinksTopic", "txnAppId", "txnVersion")
WRITE_NAMES = ("topic", "exactlyOnce", *EXACTLY_ONCE_NAMES)
SHARED_NAMES = (*BOOTSTRAP_NAMES, "includeHeaders", *value_names.BOTH_NAMES)
SPARK_NAMES = ("checkpointLocation", "queryName", "outputMode")
"""Spark's own options of a streaming query, which Spark passes to the sink together with the sink's options.
"""

_CANONICAL = {
    name.lower(): name
    for name in (*READ_NAMES, *WRITE_NAMES, *SHARED_NAMES, *SPARK_NAMES, *value_names.WRITE_NAMES)
}

MAX_BROKER_OUTAGE = "2h"
"""The default of maxBrokerOutage: longer than the restart of a cluster, shorter than the usual retention
time."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The topics or partitions to read: exactly one of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def matches(self, topic: str) -> bool:
        """Return True if the selection includes the topic `topic`."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics or any(topic == chosen.topic for chosen in self.partitions)

    @property
    def single_topic(self) -> str | None:
        """The topic, if the selection names exactly one, else None."""
        names = {*self.topics, *(chosen.topic for chosen in self.partitions)}
        return names.pop() if len(names) == 1 else None

    def among(self, topics: Container[str]) -> Selection:
        """Return this selection with only the named topics and partitions that belong to `topics`."""
        return replace(
            self,
            topics=tuple(topic for topic in self.topics if topic in topics),
            partitions=tuple(chosen for chosen in self.partitions if chosen.topic in topics),
        )

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern!r}"
        if self.partitions:
            return printable(f"assign {', '.join(map(str, self.partitions))}")
        return printable(f"subscribe {', '.join(self.topics)}")


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or end of a read: for each partition, an offset, EARLIEST, LATEST or a time.

    `everywhere` applies to every partition (EARLIEST, LATEST or milliseconds since 1970). If it is None,
    `offsets` or `timestamps` has every partition; values of `offsets` may be EARLIEST or LATEST. `option` is
    the name of the option, for messages.
    """

    option: str
    everywhere: int | None = None
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)
    late_means_latest: bool = False

    @property
    def by_time(self) -> bool:
        return bool(self.timestamps) or (self.everywhere is not None and self.everywhere >= 0)

    @property
    def moves(self) -> bool:
        """True if the bound depends on the ends of logs, which change as records are written."""
        late = self.by_time and self.late_means_latest
        return late or self.everywhere == LATEST or LATEST in self.offsets.values()


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of one micro-batch. `max_trigger_delay_ms` has an effect only with `min_rows`."""

    max_rows: int | None = None
    min_rows: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000


@dataclass(frozen=True, slots=True)
class CloudEventsOptions:
    """The options for decoding CloudEvents.

    `invalid`: "keep" rows that are no valid event (with `error` set), "drop" them or "fail" on the first.
    `raw`: value and headers of "invalid" rows only, or of "all". `assume_structured`: read records without a
    content-type as structured JSON (D9), for topics before Kafka 0.11.
    """

    profile: str = "strict"
    invalid: str = "keep"
    raw: str = "invalid"
    assume_structured: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The checked options of a query that reads topics."""

    bootstrap_servers: str
    selection: Selection
    start: Bound
    end: Bound
    limits: RateLimits
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    cloudevents: CloudEventsOptions | None
    client: Mapping[str, str | Secret]
    protocol: str = "kafka"
    """The protocol of the brokers: ``kafka`` (0.8 and later) or ``0.7``."""
    max_broker_outage_ms: int = 0
    """The time in milliseconds for which a stream waits for brokers that answered before."""
    commit_group: str | None = None
    """The consumer group to which a stream commits its offsets; None if it commits none."""
    values: ValueOptions | None = None
    """The options for decoding keys and values with a schema registry's schemas; None if both stay bytes."""
    where: Where | None = None
    """The condition that selects the records to read; None for all records."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The checked options of a writer.

    With `exactly_once`, tasks write into transactions whose ids begin with `transactional_id_prefix`, and
    the decisions about them are stored in `state_topic`.
    """

    bootstrap_servers: str
    topic: str | None
    client: Mapping[str, str | Secret]
    exactly_once: bool = False
    transactional_id_prefix: str = DEFAULT_PREFIX
    state_topic: str = STATE_TOPIC
    fail_on_data_loss: bool = True
    job: tuple[str, int] | None = None
    """(txnAppId, txnVersion) of a batch query that may be run again, with a higher version for each new job.
    """
    values: tuple[WrittenField, ...] = ()
    """The options for encoding keys and values with schemas; None if both stay bytes."""


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """Return the checked options of a reader.

    Raises:
        ConfigError: an option is unknown, malformed, missing, or contradicts another one.
    """
    given = _known(options)
    _refuse_sink_names(given)
    selection = _selection(given)
    return ReadOptions(
        bootstrap_servers=_bootstrap_servers(given),
        selection=selection,
        start=_start_bound(given, streaming),
        end=_end_bound(given, streaming),
        limits=_limits(given),
        min_partitions=count(given, "minPartitions"),
        max_records_per_partition=count(given, "maxRecordsPerPartition"),
        fail_on_data_loss=flag(given, "failOnDataLoss", True),
        include_headers=flag(given, "includeHeaders", False),
        cloudevents=_cloudevents(given),
        client=_client_options(given),
        protocol=_protocol(given),
        max_broker_outage_ms=_max_broker_outage_ms(given),
        commit_group=_commit_group(given, streaming),
        values=read_value_options(
            given, selection.single_topic, _max_broker_outage_ms(given) if streaming else 0
        ),
        where=_where(given, streaming),
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Return the checked options of a writer.

    Raises:
        ConfigError: an option is unknown, malformed, missing, or contradicts another one.
    """
    given = _known(options)
    for name in READ_NAMES:
        if name in given and name != "failOnDataLoss":
            raise ConfigError(
                f"{name} is an option for reading; the sink takes: "
                f"{', '.join(WRITE_NAMES)}, failOnDataLoss, value.format, schema.registry.*, kafka.*"
            )
    exactly_once = flag(given, "exactlyOnce", False)
    for name in (*EXACTLY_ONCE_NAMES, "failOnDataLoss"):
        if name in given and not exactly_once:
            raise ConfigError(f"{name} means something only where rows are written with exactlyOnce = true")
        if not given.get(name, name):
            raise ConfigError(f"{name} is empty: leave it out, or give it a value")
    if "kafka.transactional.id" in given:
        raise ConfigError(
            "kafka.transactional.id cannot be set: say exactlyOnce = true, and transactionalIdPrefix where "
            "the ids are to begin with a name of yours"
        )
    return WriteOptions(
        _bootstrap_servers(given),
        given.get("topic") or None,
        _client_options(given),
        exactly_once,
        given.get("transactionalIdPrefix", DEFAULT_PREFIX),
        given.get("sinksTopic", STATE_TOPIC),
        flag(given, "failOnDataLoss", True),
        _job(given),
        write_value_options(given),
    )


def _job(given: Mapping[str, str]) -> tuple[str, int] | None:
    version = count(given, "txnVersion", least=0)
    if ("txnAppId" in given) != (version is not None):
        raise ConfigError(
            "txnAppId and txnVersion belong together: whose rows these are, and which of its batches"
        )
    return None if version is None else (given["txnAppId"], version)


def schema_options(options: Mapping[str, str]) -> tuple[bool, CloudEventsOptions | None]:
    """Return the options that determine the schema: include headers, and the options for decoding events.

    Spark requests the schema before the source can know if the query is a stream. Every option that is valid
    for both kinds of queries is checked at once, so that a mistake is reported early.

    Raises:
        ConfigError: an option is unknown, malformed, missing, or contradicts another one.
    """
    given = _known(options)
    _bootstrap_servers(given)
    _selection(given)
    _limits(given)
    _protocol(given)
    flag(given, "failOnDataLoss", True)
    flag(given, "commitOffsets", False)
    _max_broker_outage_ms(given)
    _where(given, streaming=False)
    return flag(given, "includeHeaders", False), _cloudevents(given)


def value_options(options: Mapping[str, str]) -> ValueOptions | None:
    """Return the options for decoding keys and values, which determine a DataFrame's schema, or None.

    Raises:
        ConfigError: an option is unknown, malformed, missing, or contradicts another one.
    """
    given = _known(options)
    _refuse_sink_names(given)
    return read_value_options(given, _selection(given).single_topic)


def _refuse_sink_names(given: Mapping[str, str]) -> None:
    for name in value_names.WRITE_NAMES:
        if name in given:
            raise ConfigError(f"{name} is an option for writing, where schemas are registered")


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options under their documented names; names that begin with `kafka.` stay in lower case."""
    given: dict[str, str] = {}
    for key, value in options.items():
        lowered = key.lower()
        if lowered == "path":
            raise ConfigError(
                "load and save take no path: name topics with subscribe, or with topic when writing"
            )
        if lowered == "pushfilters":
            raise ConfigError(
                "pushFilters is not offered: Spark takes what one query filtered for the next query of "
                "the same DataFrame; give the condition to the option where"
            )
        if lowered in REFUSED:
            raise ConfigError(f"{lowered} cannot be set: {REFUSED[lowered]}")
        if lowered not in _CANONICAL and not lowered.startswith(("kafka.", REGISTRY_PREFIX)):
            raise ConfigError(f"unknown option {key!r}{_nearest(lowered)}")
        # A password may begin or end with a space.
        given[_CANONICAL.get(lowered, lowered)] = (
            str(value) if is_secret_name(lowered) else str(value).strip()
        )
    return given


def _nearest(lowered: str) -> str:
    near = nearest(lowered, _CANONICAL)
    if near:
        return f"; did you mean {_CANONICAL[near[0]]!r}?"
    return "; options for the Kafka client start with 'kafka.'"


def _bootstrap_servers(given: Mapping[str, str]) -> str:
    answers = {name: given[name] for name in BOOTSTRAP_NAMES if given.get(name)}
    if not answers:
        raise ConfigError("say which broker: option 'kafka.bootstrap.servers' as host:port[,host:port...]")
    if len(set(answers.values())) > 1:
        raise ConfigError(f"{' and '.join(answers)} name different brokers; keep one")
    return next(iter(answers.values()))


def _client_options(given: Mapping[str, str]) -> dict[str, str | Secret]:
    """Return the settings for the client, without the prefix `kafka.`; `repr` shows none of its secrets.

    The source joins no group: `commitOffsets` commits to the group `kafka.group.id`.
    """
    return {
        name.removeprefix("kafka."): Secret(value) if is_secret_name(name) else value
        for name, value in given.items()
        if name.startswith("kafka.")
        and name not in BOOTSTRAP_NAMES
        and name.removeprefix("kafka.") not in NO_EFFECT
    }


def _protocol(given: Mapping[str, str]) -> str:
    """Return the brokers' protocol. With 0.7, refuse options that would divide ranges of byte offsets."""
    protocol = choice(given, "protocol", ("kafka", "0.7"))
    if protocol == "0.7":
        for name in ("maxOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition"):
            if name in given:
                raise ConfigError(f"{name} means nothing with protocol 0.7, whose offsets are bytes")
        if "subscribePattern" in given:
            raise ConfigError("a Kafka 0.7 broker does not list its topics: name them with subscribe")
    return protocol


def _max_broker_outage_ms(given: Mapping[str, str]) -> int:
    return duration_ms("maxBrokerOutage", given.get("maxBrokerOutage", MAX_BROKER_OUTAGE))


def _where(given: Mapping[str, str], streaming: bool) -> Where | None:
    if "where" not in given:
        return None
    if streaming:
        raise ConfigError(
            "where is for batch queries: give the condition of a stream to .where(...) of its DataFrame"
        )
    from penstock.spark.source.where.sql import parsed_where

    return parsed_where(given["where"])


def _commit_group(given: Mapping[str, str], streaming: bool) -> str | None:
    if not flag(given, "commitOffsets", False):
        return None
    if not streaming:
        raise ConfigError("commitOffsets means nothing in a batch query, which has no progress to show")
    if _protocol(given) == "0.7":
        raise ConfigError("commitOffsets means nothing with protocol 0.7: its groups are in ZooKeeper")
    group_id = given.get("kafka.group.id", "")
    if not group_id:
        raise ConfigError("commitOffsets needs the option kafka.group.id: the group to commit to")
    return group_id


def _selection(given: Mapping[str, str]) -> Selection:
    chosen = [name for name in SELECTION_NAMES if name in given]
    if not chosen:
        raise ConfigError("say what to read: one of the options subscribe, subscribePattern, assign")
    if len(chosen) > 1:
        raise ConfigError(f"{' and '.join(chosen)} contradict each other; keep one")
    name, text = chosen[0], given[chosen[0]]
    if name == "subscribe":
        topics = tuple(sorted({topic.strip() for topic in text.split(",") if topic.strip()}))
        if not topics:
            raise ConfigError("subscribe names no topic; write it as topic[,topic...]")
        return Selection(topics=topics)
    if name == "assign":
        return Selection(partitions=_assigned(text))
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"subscribePattern {text!r} is no regular expression: {error}") from None
    if not text:
        raise ConfigError("subscribePattern is empty")
    return Selection(pattern=text)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    shape = 'assign takes JSON like {"topic": [0, 1]}'
    document = json_object(text, shape)
    partitions: set[TopicPartition] = set()
    for topic, numbers in document.items():
        if not isinstance(numbers, list) or not all(is_count(number) for number in numbers):
            raise ConfigError(f"{shape}, not {text!r}")
        partitions.update(TopicPartition(topic, number) for number in numbers)
    if not partitions:
        raise ConfigError("assign names no partition")
    return tuple(sorted(partitions))


def _start_bound(given: Mapping[str, str], streaming: bool) -> Bound:
    """Return the start of the read.

    As in Spark, startingTimestamp overrides startingOffsetsByTimestamp, and both override startingOffsets.
    """
    late = given.get("startingOffsetsByTimestampStrategy", "error").lower()
    if late not in ("error", "latest"):
        raise ConfigError(f"startingOffsetsByTimestampStrategy is 'error' or 'latest', not {late!r}")
    timed = _time_bound(given, "startingTimestamp", "startingOffsetsByTimestamp", late == "latest")
    if timed is not None:
        return timed
    option = "startingOffsets"
    text = given.get(option, "latest" if streaming else "earliest")
    if text.lower() == "earliest":
        return Bound(option, everywhere=EARLIEST)
    if text.lower() == "latest":
        if not streaming:
            raise ConfigError(
                "startingOffsets 'latest' reads nothing in a batch query; say 'earliest' or offsets"
            )
        return Bound(option, everywhere=LATEST)
    offsets = offsets_by_partition(text, option, lowest=EARLIEST)
    if not streaming and LATEST in offsets.values():
        raise ConfigError(
            "startingOffsets -1 (latest) reads nothing in a batch query; say -2 (earliest) or an offset"
        )
    return Bound(option, offsets=offsets)


def _end_bound(given: Mapping[str, str], streaming: bool) -> Bound:
    names = [n for n in ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets") if n in given]
    if streaming and names:
        raise ConfigError(
            f"{names[0]} means nothing in a streaming query; use trigger(availableNow=True) to stop"
        )
    timed = _time_bound(given, "endingTimestamp", "endingOffsetsByTimestamp", True)
    if timed is not None:
        return timed
    option = "endingOffsets"
    text = given.get(option, "latest")
    if text.lower() == "latest":
        return Bound(option, everywhere=LATEST)
    if text.lower() == "earliest":
        raise ConfigError("endingOffsets 'earliest' reads nothing; say 'latest' or offsets")
    offsets = offsets_by_partition(text, option, lowest=LATEST)
    return Bound(option, offsets=offsets)


def _time_bound(given: Mapping[str, str], single: str, each: str, late_means_latest: bool) -> Bound | None:
    if single in given:
        timestamp = count(given, single, least=0)
        return Bound(single, everywhere=timestamp, late_means_latest=late_means_latest)
    if each in given:
        timestamps = offsets_by_partition(given[each], each, lowest=0)
        return Bound(each, timestamps=timestamps, late_means_latest=late_means_latest)
    return None


def _limits(given: Mapping[str, str]) -> RateLimits:
    most = count(given, "maxOffsetsPerTrigger")
    least = count(given, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise ConfigError(f"minOffsetsPerTrigger {least} is above maxOffsetsPerTrigger {most}")
    delay = given.get("maxTriggerDelay")
    if delay is None:
        return RateLimits(most, least)
    return RateLimits(most, least, duration_ms("maxTriggerDelay", delay))


def _cloudevents(given: Mapping[str, str]) -> CloudEventsOptions | None:
    if choice(given, "cloudevents", ("off", "columns")) == "off":
        extra = [name for name in given if name.startswith("cloudevents.")]
        if extra:
            raise ConfigError(f"{extra[0]} needs the option cloudevents = 'columns'")
        return None
    profile = choice(given, "cloudevents.profile", ("strict", "lenient"))
    if "cloudevents.strict" in given:
        named = "strict" if flag(given, "cloudevents.strict", True) else "lenient"
        if "cloudevents.profile" in given and named != profile:
            raise ConfigError("cloudevents.strict and cloudevents.profile contradict each other; keep one")
        profile = named
    return CloudEventsOptions(
        profile=profile,
        invalid=choice(given, "cloudevents.invalid", ("keep", "drop", "fail")),
        raw=choice(given, "cloudevents.raw", ("invalid", "all")),
        assume_structured=flag(given, "cloudevents.assumeStructured", False),
    )
