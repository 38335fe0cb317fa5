"""The options of clients: Kafka's dotted names, and the same names with underscores.

An option that is misspelt, malformed or contradictory is refused at once; the error has the nearest known
name. Where librdkafka and the Java clients differ, both names are accepted. This module only parses.

Durations end in ``ms``, sizes in ``bytes`` (``batch.size``, ``buffer.memory`` and ``max.request.size`` are
bytes too, as everywhere in Kafka). Defaults are the Java client's, unless a field gives the reason for
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.client.addresses import Address, parse_addresses
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.records.compression.codecs import UNPACKED_BYTES_MAX, UNPACKED_RECORDS_MAX, UnpackLimits

if TYPE_CHECKING:
    from penstock.client.assignors import Assignor
    from penstock.client.security.settings import SecuritySettings

T = TypeVar("T")
C = TypeVar("C", bound="ClientConfig")

Partitioner = Callable[[bytes | None, int], int | None]
"""A function of a key and the number of partitions that returns a partition, or None for any partition."""

DEFAULT_SESSION_TIMEOUT_MS = 45_000.0
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_PARTITIONER: str | Partitioner = "murmur2_random"
PARTITIONER_NAMES = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a")


def whole_number(low: int, high: int = 2**31 - 1) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool):
            raise ValueError("expected a whole number")
        try:
            number = int(value) if isinstance(value, (str, int)) else _int_of_float(value)
        except ValueError:
            raise ValueError("expected a whole number") from None
        if not low <= number <= high:
            raise ValueError(f"expected {low} to {high}")
        return number

    return parse


def _int_of_float(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError


def milliseconds(low: float = 0) -> Callable[[object], float]:
    """Return a parser of durations in milliseconds, which may have a fraction, as in ``linger.ms``."""

    def parse(value: object) -> float:
        try:
            number = float(value) if isinstance(value, (str, int, float)) else -1.0
        except ValueError:
            raise ValueError("expected a number of milliseconds") from None
        if not low <= number < 2**31:
            raise ValueError(f"expected milliseconds, at least {low:g}")
        return number

    return parse


def boolean(value: object) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise ValueError("expected true or false")


def one_of(*words: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(f"expected one of {', '.join(words)}{did_you_mean(word, words, 3, quoted=True)}")
        return word

    return parse


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected text")
    return value


def codec_name(value: object) -> str:
    return one_of(*CODEC_NAMES)("none" if value is None else value)


ACKS_MAX = 2**15 - 1
"""The maximum value of `acks`: the field in a Produce request is an int16."""


def acks_number(value: object) -> int:
    word = str(value).strip().lower()
    if word in ("all", "-1"):
        return ALL_REPLICAS
    if word.isdecimal() and int(word) <= ACKS_MAX:
        return int(word)
    raise ValueError("expected all (or -1), 1 or 0; or for brokers of Kafka 0.8 a number of replicas")


BY_DURATION = "by_duration:"


def offset_reset(value: object) -> str:
    """Return Java's spelling of a value of ``auto.offset.reset``, given as Java or librdkafka spells it.

    ``by_duration:PT1H`` begins an hour before now (KIP-1106).
    """
    if isinstance(value, str) and value.strip().lower().startswith(BY_DURATION):
        from penstock.moments import duration_ms

        return f"{BY_DURATION}{duration_ms(value.strip()[len(BY_DURATION) :])}"
    word = one_of("earliest", "latest", "none", "smallest", "beginning", "largest", "end", "error")(value)
    synonyms = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest"}
    return synonyms.get(word, "none" if word == "error" else word)


def optional_text(value: object) -> str | None:
    return None if value is None or value == "" else text(value)


def assignor_choice(value: object) -> tuple[str | Assignor, ...]:
    """Return assignors in the order of preference. They are given as names or as objects."""
    from penstock.client.assignors import Assignor, assignor_named

    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items:
        raise ValueError("expected names of assignors, or objects that are some")
    chosen: list[str | Assignor] = []
    for item in items:
        if isinstance(item, str):
            chosen.append(assignor_named(item).name)
        elif isinstance(item, type) and issubclass(item, Assignor):
            chosen.append(item())
        elif isinstance(item, Assignor):
            chosen.append(item)
        else:
            raise ValueError(f"{item!r} is neither the name of an assignor nor an Assignor")
    return tuple(chosen)


def function_of_one(value: object) -> Callable[[Any], Any] | None:
    """Return a serializer or deserializer, which must be a function of one argument; or None."""
    if value is None:
        return None
    from penstock.client.serializers import read_function  # few clients have one

    return read_function(value)


def statistics_function(value: object) -> Callable[[Any], Any] | None:
    """Return the option ``stats_cb``: a function, or None. Raises ValueError for anything else."""
    if value is None or callable(value):
        return value
    raise ValueError("a function is needed that takes penstock.client.Statistics")


def partitioner_choice(value: object) -> str | Partitioner:
    return value if callable(value) else one_of(*PARTITIONER_NAMES)(value)


def optional_boolean(value: object) -> bool | None:
    return None if value is None else boolean(value)


def _option(default: T, parse: Callable[[object], T], *aliases: str) -> T:
    """Return a dataclass field for an option, with its default, its parser, and its other names."""
    made: Any = field(default=default, metadata={"parse": parse, "aliases": aliases})
    result: T = made
    return result


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """The options of every client. Field names are Kafka's option names with underscores for dots."""

    bootstrap_servers: tuple[Address, ...] = _option((), parse_addresses, "metadata.broker.list")
    client_id: str = _option("penstock", text)
    security: SecuritySettings | None = None
    """The security settings, from ``security.protocol``, ``ssl.*`` and ``sasl.*``; None for PLAINTEXT."""
    given: frozenset[str] = frozenset()
    """The fields that the application has set; all others have their defaults."""
    request_timeout_ms: float = _option(30_000.0, milliseconds(1), "socket.timeout.ms")
    default_api_timeout_ms: float = _option(60_000.0, milliseconds(1))
    retry_backoff_ms: float = _option(100.0, milliseconds())
    retry_backoff_max_ms: float = _option(1_000.0, milliseconds())
    reconnect_backoff_ms: float = _option(50.0, milliseconds())
    reconnect_backoff_max_ms: float = _option(1_000.0, milliseconds())
    socket_connection_setup_timeout_ms: float = _option(10_000.0, milliseconds(1))
    # False spares brokers before 0.10 a question that 0.9.0 loses other clients' requests over.
    api_version_request: bool = _option(True, boolean)
    api_version_request_timeout_ms: float = _option(10_000.0, milliseconds(1))
    unstable_api_versions_enable: bool = _option(False, boolean)
    # Files with secrets are delivered within a minute or two: Kubernetes looks once a minute.
    penstock_login_patience_ms: float = _option(120_000.0, milliseconds())
    metadata_max_age_ms: float = _option(300_000.0, milliseconds(1), "topic.metadata.refresh.interval.ms")
    # librdkafka waits 30 s for an unknown topic to appear, Java 60 s: too long for a typing error.
    topic_metadata_propagation_max_ms: float = _option(5_000.0, milliseconds())
    allow_auto_create_topics: bool = _option(False, boolean)
    receive_message_max_bytes: int = _option(256 << 20, whole_number(1_000))
    send_buffer_bytes: int = _option(-1, whole_number(-1), "socket.send.buffer.bytes")
    receive_buffer_bytes: int = _option(-1, whole_number(-1), "socket.receive.buffer.bytes")
    enable_metrics_push: bool = _option(True, boolean)
    statistics_interval_ms: float = _option(0.0, milliseconds())
    stats_cb: Callable[[Any], object] | None = _option(None, statistics_function)  # noqa: RUF009

    @classmethod
    def of(cls: type[C], config: Mapping[str, object] | None, keywords: object, **arguments: object) -> C:
        """Return the options given to a client's constructor.

        None in `arguments` means that the option is not given.

        Raises: as `parse`.
        """
        if isinstance(arguments.get("bootstrap_servers"), Mapping):
            raise ConfigError("options come by name: write config={...}, or bootstrap_servers=, client_id= …")
        given: dict[str, object] = dict(keywords)  # type: ignore[call-overload]
        given |= {name: value for name, value in arguments.items() if value is not None}
        return cls.parse(config, given)

    @classmethod
    def parse(
        cls: type[C],
        config: Mapping[str, object] | None,
        keywords: Mapping[str, object],
        *,
        prefix: str = "",
    ) -> C:
        """Return the options given under dotted names, and as keywords with underscores.

        `prefix` precedes the names of options in error messages, such as ``kafka.`` in Spark.

        Raises:
            ConfigError: a name is unknown or given twice, a value is malformed, or options contradict.
        """
        if config is not None and not isinstance(config, Mapping):
            raise ConfigError(f"config is {type(config).__name__}: a mapping of options is needed")
        known = known_names(cls)
        values: dict[str, Any] = {}
        secured: dict[str, object] = {}
        spelt: dict[str, str] = {}
        for name, value in _pairs(config, keywords):
            if not isinstance(name, str):
                raise ConfigError(f"{name!r} is no name of an option: names are text")
            dotted = name.replace("_", ".") if "." not in name else name
            if dotted.startswith(SECURITY_NAMES):
                if dotted in secured:
                    raise ConfigError(f"option {prefix + name!r}: given twice")
                secured[dotted], spelt[dotted] = value, name
                continue
            option = known.get(dotted)
            if option is None:
                raise _unknown(name, dotted, known, prefix)
            if option.name in values:
                raise ConfigError(f"option {prefix + name!r}: given twice, or under another name as well")
            try:
                values[option.name] = option.metadata["parse"](value)
            except ValueError as error:
                # A mapping in the wrong place may hold passwords.
                shown = type(value).__name__ if isinstance(value, Mapping) else repr(value)
                raise ConfigError(f"option {prefix + name!r} = {shown}: {error}") from None
        if not values.get("bootstrap_servers"):
            raise ConfigError('option "bootstrap.servers" is missing: where is Kafka, as host:port?')
        is_plain = str(secured.get("security.protocol", "")).strip().lower() == "plaintext"
        if secured and not (is_plain and len(secured) == 1):
            from penstock.client.security.options import parse_security

            values["security"] = parse_security(secured, prefix, spelt)
        made = cls(**values, given=frozenset(values))
        made.check()
        return made

    @property
    def described(self) -> str:
        """The bootstrap servers and the security protocol as text for messages, without secrets."""
        servers = ",".join(map(str, self.bootstrap_servers))
        return servers if self.security is None else f"{servers}, {self.security.protocol}"

    def check(self) -> None:
        """Raise ConfigError if options contradict each other."""
        # An interval alone has no effect: files of settings of other clients have one.
        if self.stats_cb is not None and not self.statistics_interval_ms:
            raise ConfigError(
                'options "statistics.interval.ms" and "stats_cb": how often, and the function that is called '
                "with the statistics, belong together"
            )


@dataclass(frozen=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """The options of a producer beyond those of every client."""

    acks: int = _option(ALL_REPLICAS, acks_number, "request.required.acks")
    compression_type: str = _option("none", codec_name, "compression.codec")
    linger_ms: float = _option(0.0, milliseconds(), "queue.buffering.max.ms")
    # Java's 16 KiB would make one batch of every 150 small records. A batch is sent as soon as the
    # connection is free, however small, so that a large limit costs no latency.
    batch_size: int = _option(1_000_000, whole_number(1))
    buffer_memory: int = _option(32 << 20, whole_number(1_024, 2**40))
    max_block_ms: float = _option(60_000.0, milliseconds())
    max_request_size: int = _option(1 << 20, whole_number(100), "message.max.bytes")
    max_in_flight_requests_per_connection: int = _option(5, whole_number(1), "max.in.flight")
    enable_idempotence: bool | None = _option(None, optional_boolean)
    delivery_timeout_ms: float = _option(120_000.0, milliseconds(1), "message.timeout.ms")
    retries: int = _option(2**31 - 1, whole_number(0), "message.send.max.retries")
    partitioner: str | Partitioner = _option(DEFAULT_PARTITIONER, partitioner_choice)  # noqa: RUF009
    allow_auto_create_topics: bool = _option(True, boolean)
    transactional_id: str | None = _option(None, optional_text)
    transaction_timeout_ms: float = _option(60_000.0, milliseconds(1))
    key_serializer: Callable[[Any], bytes | None] | None = _option(None, function_of_one)  # noqa: RUF009
    value_serializer: Callable[[Any], bytes | None] | None = _option(None, function_of_one)  # noqa: RUF009

    def check(self) -> None:
        super().check()
        if self.transactional_id is not None:
            if not self.transactional_id:
                raise ConfigError('option "transactional.id" is empty: leave it out, or name the producer')
            if not self.wants_idempotence:
                raise ConfigError(
                    'option "transactional.id": transactions need idempotence: acks=all, retries, and '
                    "max.in.flight.requests.per.connection of 5 at most"
                )
        if self.enable_idempotence:
            if self.acks != ALL_REPLICAS:
                raise ConfigError('options "enable.idempotence" and "acks": idempotence needs acks=all')
            if self.max_in_flight_requests_per_connection > 5:
                raise ConfigError(
                    'options "enable.idempotence" and "max.in.flight.requests.per.connection": '
                    "idempotence allows at most 5, because brokers keep five batches"
                )
            if self.retries == 0:
                raise ConfigError('options "enable.idempotence" and "retries": idempotence needs retries')

    @property
    def wants_idempotence(self) -> bool:
        """True if the producer requests a producer id: by default, if other options allow idempotence."""
        if self.enable_idempotence is not None:
            return self.enable_idempotence
        return (
            self.acks == ALL_REPLICAS and self.retries > 0 and self.max_in_flight_requests_per_connection <= 5
        )


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """The options of a consumer beyond those of every client."""

    auto_offset_reset: str = _option("latest", offset_reset)
    isolation_level: str = _option("read_uncommitted", one_of("read_uncommitted", "read_committed"))
    fetch_min_bytes: int = _option(1, whole_number(0))
    fetch_max_wait_ms: int = _option(500, whole_number(0), "fetch.wait.max.ms")
    fetch_max_bytes: int = _option(50 << 20, whole_number(1_024))
    max_partition_fetch_bytes: int = _option(1 << 20, whole_number(1_024), "fetch.message.max.bytes")
    max_poll_records: int = _option(500, whole_number(1))
    check_crcs: bool = _option(True, boolean)
    queued_max_messages_kbytes: int = _option(64 << 10, whole_number(1))
    # For each compressed batch. What is beyond is an error that names the batch, before it takes memory.
    penstock_unpack_max_bytes: int = _option(UNPACKED_BYTES_MAX, whole_number(1))
    penstock_unpack_max_records: int = _option(UNPACKED_RECORDS_MAX, whole_number(1))
    group_id: str | None = _option(None, optional_text)
    group_instance_id: str | None = _option(None, optional_text)
    group_protocol: str = _option("classic", one_of("classic", "consumer", "auto"))
    group_remote_assignor: str | None = _option(None, optional_text)
    client_rack: str | None = _option(None, optional_text)
    session_timeout_ms: float = _option(DEFAULT_SESSION_TIMEOUT_MS, milliseconds(1))
    heartbeat_interval_ms: float = _option(3_000.0, milliseconds(1))
    max_poll_interval_ms: float = _option(300_000.0, milliseconds(1))
    partition_assignment_strategy: tuple[str | Assignor, ...] = _option(
        ("range", "cooperative-sticky"), assignor_choice
    )
    enable_auto_commit: bool = _option(True, boolean)
    auto_commit_interval_ms: float = _option(5_000.0, milliseconds(1))
    key_deserializer: Callable[[bytes], Any] | None = _option(None, function_of_one)  # noqa: RUF009
    value_deserializer: Callable[[bytes], Any] | None = _option(None, function_of_one)  # noqa: RUF009

    @property
    def unpack_limits(self) -> UnpackLimits:
        """The maximum numbers of bytes and records that one compressed batch may decompress to."""
        return UnpackLimits(self.penstock_unpack_max_bytes, self.penstock_unpack_max_records)

    @property
    def assignors(self) -> tuple[str | Assignor, ...]:
        return self.partition_assignment_strategy

    @property
    def has_default_session_timeout(self) -> bool:
        return self.session_timeout_ms == DEFAULT_SESSION_TIMEOUT_MS

    @property
    def reset_age_ms(self) -> int | None:
        """The duration of ``auto.offset.reset=by_duration:...`` in milliseconds, or None for other values."""
        reset = self.auto_offset_reset
        return int(reset.removeprefix(BY_DURATION)) if reset.startswith(BY_DURATION) else None

    def check(self) -> None:
        super().check()
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                'options "heartbeat.interval.ms" and "session.timeout.ms": several heartbeats must fit into '
                f"a session, {self.heartbeat_interval_ms:g} is not below {self.session_timeout_ms:g}"
            )
        self._check_group_protocol()
        if self.group_instance_id is not None and self.group_id is None:
            raise ConfigError('options "group.instance.id" and "group.id": an instance of which group?')
        if self.fetch_max_bytes > self.receive_message_max_bytes:
            raise ConfigError(
                f'options "fetch.max.bytes" and "receive.message.max.bytes": {self.fetch_max_bytes} could be '
                f"fetched, but only {self.receive_message_max_bytes} be received"
            )

    def _check_group_protocol(self) -> None:
        """Raise ConfigError for options that have no effect with the chosen ``group.protocol``, as in Java.

        ``auto`` accepts the options of both protocols.
        """
        meant = {
            "consumer": {
                "session_timeout_ms": "the broker says it (group.consumer.session.timeout.ms)",
                "heartbeat_interval_ms": "the broker says it (group.consumer.heartbeat.interval.ms)",
                "partition_assignment_strategy": "group.remote.assignor names an assignor of the broker",
            },
            "classic": {"group_remote_assignor": "members assign; partition.assignment.strategy says how"},
        }
        for name, instead in meant.get(self.group_protocol, {}).items():
            if name in self.given:
                raise ConfigError(
                    f'option "{name.replace("_", ".")}" has no meaning with '
                    f'"group.protocol" = "{self.group_protocol}": leave it out; {instead}'
                )


@dataclass(frozen=True, kw_only=True)
class ShareConsumerConfig(ClientConfig):
    """The options of a share consumer (KIP-932) beyond those of every client."""

    group_id: str | None = _option(None, optional_text)
    share_acknowledgement_mode: str = _option("implicit", one_of("implicit", "explicit"))
    share_acquire_mode: str = _option("batch_optimized", one_of("batch_optimized", "record_limit"))
    max_poll_records: int = _option(500, whole_number(1))
    max_poll_interval_ms: float = _option(300_000.0, milliseconds(1))
    fetch_min_bytes: int = _option(1, whole_number(0))
    fetch_max_wait_ms: int = _option(500, whole_number(0), "fetch.wait.max.ms")
    fetch_max_bytes: int = _option(50 << 20, whole_number(1_024))
    check_crcs: bool = _option(True, boolean)
    penstock_unpack_max_bytes: int = _option(UNPACKED_BYTES_MAX, whole_number(1))
    penstock_unpack_max_records: int = _option(UNPACKED_RECORDS_MAX, whole_number(1))
    client_rack: str | None = _option(None, optional_text)
    key_deserializer: Callable[[bytes], Any] | None = _option(None, function_of_one)  # noqa: RUF009
    value_deserializer: Callable[[bytes], Any] | None = _option(None, function_of_one)  # noqa: RUF009

    @property
    def unpack_limits(self) -> UnpackLimits:
        """The maximum numbers of bytes and records that one compressed batch may decompress to."""
        return UnpackLimits(self.penstock_unpack_max_bytes, self.penstock_unpack_max_records)

    @property
    def is_explicit(self) -> bool:
        """True if the application acknowledges each record explicitly."""
        return self.share_acknowledgement_mode == "explicit"

    @property
    def is_strict(self) -> bool:
        """True if a fetch returns no more records than were requested."""
        return self.share_acquire_mode == "record_limit"

    def check(self) -> None:
        super().check()
        if self.group_id is None:
            raise ConfigError('option "group.id" is missing: which share group does this consumer belong to?')
        if self.fetch_max_bytes > self.receive_message_max_bytes:
            raise ConfigError(
                f'options "fetch.max.bytes" and "receive.message.max.bytes": {self.fetch_max_bytes} could be '
                f"fetched, but only {self.receive_message_max_bytes} be received"
            )


NOT_OF_SHARE_GROUPS = {
    "auto.offset.reset": "the group has share.auto.offset.reset",
    "isolation.level": "the group has share.isolation.level",
    "session.timeout.ms": "the group has share.session.timeout.ms",
    "heartbeat.interval.ms": "the group has share.heartbeat.interval.ms",
    "enable.auto.commit": "share.acknowledgement.mode is implicit or explicit",
    "auto.commit.interval.ms": "acknowledgements go with the next poll, or with commit()",
    "group.instance.id": "members of share groups are not static",
    "group.protocol": "a share consumer has that of share groups",
    "group.remote.assignor": "the broker has group.share.assignors",
    "partition.assignment.strategy": "the broker has group.share.assignors",
}
"""Consumer options that a share consumer refuses, as in Java, each with the advice of its error message."""


SECURITY_NAMES = (
    "security.", "ssl.", "sasl.", "enable.ssl.", "enable.sasl.", "https.ca.", "oauth.cb",
)  # fmt: skip
"""Prefixes of the options that `penstock.client.security.options` parses. That module is imported only if
such an option is given.
"""


def _pairs(
    config: Mapping[str, object] | None, keywords: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    yield from (config or {}).items()
    yield from keywords.items()


def known_names(config_class: type[ClientConfig]) -> dict[str, Field[Any]]:
    """Return a dict from dotted option name to field of a config class, without security options."""
    known: dict[str, Field[Any]] = {}
    for option in fields(config_class):
        if not option.metadata:
            continue
        known[option.name.replace("_", ".")] = option
        for alias in option.metadata["aliases"]:
            known[alias] = option
    return known


def _unknown(name: str, dotted: str, known: Mapping[str, object], prefix: str) -> ConfigError:
    """Return the exception for an option that this kind of client does not have."""
    if dotted in NOT_OF_SHARE_GROUPS and "share.acquire.mode" in known:
        return ConfigError(
            f"option {prefix + name!r} has no meaning in a share group: leave it out; "
            f"{NOT_OF_SHARE_GROUPS[dotted]}"
        )
    from penstock.client.security.options import INERT, OPTIONS
    from penstock.client.unknown_options import unknown_option

    owners = (
        (ProducerConfig, "producer"),
        (ConsumerConfig, "consumer"),
        (ShareConsumerConfig, "share consumer"),
    )
    for kind, owner in owners:
        if dotted in known_names(kind):
            return ConfigError(f"option {prefix + name!r} belongs to the {owner}")
    return unknown_option(name, [*known, *OPTIONS, *INERT], prefix)
