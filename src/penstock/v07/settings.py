"""The settings of a Kafka 0.7 broker, under the names of its server.properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.records.compression.codecs import BYTES_OPTION, RECORDS_OPTION, UnpackLimits
from penstock.v07.byte_log import HOUR_MS, ByteLogConfig

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS


class _Setting(NamedTuple):
    default: str
    least: int = 0


NUMBERS: Mapping[str, _Setting] = {
    "brokerid": _Setting("0"),
    "num.partitions": _Setting("1", 1),
    "max.socket.request.bytes": _Setting(str(100 << 20), 1),
    "max.message.size": _Setting("1000000"),
    "max.topic.name.length": _Setting("255", 1),
    "log.file.size": _Setting(str(1 << 29), 1),
    "log.roll.hours": _Setting("168", 1),
    "log.retention.hours": _Setting("168", 1),
    "log.retention.size": _Setting("-1", -1),
    "log.cleanup.interval.mins": _Setting("10", 1),
    "log.flush.interval": _Setting("0"),
    "log.default.flush.interval.ms": _Setting("3000", 1),
    "log.default.flush.scheduler.interval.ms": _Setting("3000", 1),
    "zk.sessiontimeout.ms": _Setting("6000", 1),
    "zk.connectiontimeout.ms": _Setting("0"),
    BYTES_OPTION: _Setting(str(32 << 20), 1),
    RECORDS_OPTION: _Setting("250000", 1),
}
"""The settings with whole numbers, and their defaults. Two defaults differ from release 0.7.2:
`log.flush.interval` is 500 there (with 0, messages are readable at once); `log.file.size` is 1 GiB in its
code, but 512 MiB in its sample file and in "Writing a Driver for Kafka". `zk.connectiontimeout.ms` is the
timeout of the first connection to ZooKeeper; 0 means `zk.sessiontimeout.ms`. The last two settings are
Penstock's own: the limits of one request's decompressed size, and of the number of its messages in wrappers.
A request beyond them ends its connection.
"""

TEXTS: Mapping[str, str] = {"hostname": "", "zk.connect": "", "zk.digest": ""}
"""Text settings. `zk.digest`, user:password, is Penstock's own: with it only that user has access to the
nodes of this broker."""

PER_TOPIC: Mapping[str, tuple[str, int]] = {
    "topic.partition.count.map": ("num.partitions", 1),
    "topic.log.file.size": ("log.file.size", 1),
    "topic.log.roll.hours": ("log.roll.hours", 1),
    "topic.log.retention.hours": ("log.retention.hours", 1),
    "topic.log.retention.size": ("log.retention.size", 1),
    "topic.flush.intervals.ms": ("log.default.flush.interval.ms", 1),
}
"""Settings of the form ``topic:number,topic:number``, with the setting that each overrides for its topics."""


class Settings:
    """The settings of one broker of Kafka 0.7.

    Raises:
        ConfigError: a name is unknown (the nearest one is suggested), or a value is invalid.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        given = dict(texts or {})
        known = [*NUMBERS, *TEXTS, *PER_TOPIC]
        for name in given:
            if name not in known:
                raise ConfigError(f"a Kafka 0.7 broker has no setting {name!r}{did_you_mean(name, known)}")
        self._numbers = {
            name: _number(name, given.get(name, setting.default), setting.least)
            for name, setting in NUMBERS.items()
        }
        self._texts = {name: given.get(name, default) for name, default in TEXTS.items()}
        self._per_topic: dict[str, dict[str, int]] = {}
        for name, (overridden, least) in PER_TOPIC.items():
            self._per_topic[overridden] = _by_topic(name, given.get(name, ""), least)

    def number(self, name: str, topic: str | None = None) -> int:
        """Return the value of a numeric setting, as overridden for `topic` if there is an override."""
        if topic is not None:
            return self._per_topic.get(name, {}).get(topic, self._numbers[name])
        return self._numbers[name]

    def text(self, name: str) -> str:
        return self._texts[name]

    @property
    def unpack_limits(self) -> UnpackLimits:
        """The limits of one request: its decompressed size, and the number of messages inside wrappers."""
        return UnpackLimits(self._numbers[BYTES_OPTION], self._numbers[RECORDS_OPTION])

    def log_config(self, topic: str) -> ByteLogConfig:
        """Return the settings of the logs of one topic."""
        number: Callable[[str], int] = lambda name: self.number(name, topic)  # noqa: E731
        return ByteLogConfig(
            segment_bytes=number("log.file.size"),
            roll_ms=number("log.roll.hours") * HOUR_MS,
            flush_messages=number("log.flush.interval"),
            flush_ms=number("log.default.flush.interval.ms"),
            retention_ms=number("log.retention.hours") * HOUR_MS,
            retention_bytes=number("log.retention.size"),
        )


def _number(name: str, text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ConfigError(f"{name} is a whole number, not {text!r}") from None
    if number < least:
        raise ConfigError(f"{name} is at least {least}, not {number}")
    return number


def _by_topic(name: str, text: str, least: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        topic, colon, number = entry.rpartition(":")
        if not colon or not topic:
            raise ConfigError(f"{name} is topic:number,topic:number; {entry!r} is not")
        found[topic] = _number(f"{name} of {topic}", number, least)
    return found
