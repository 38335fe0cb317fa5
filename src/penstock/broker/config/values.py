"""The values of broker and topic settings, checked and converted to their types.

`BrokerConfig` has the settings of the broker; `TopicConfig` adds those that are set for one topic.
Both return typed values and the source of each value, which DescribeConfigs reports.
This module reads no file, and does not depend on the modules that use the settings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from math import inf, isfinite
from re import compile as compile_
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    SHORT,
    ConfigKey,
)
from penstock.broker.config.topic_keys import RETIRED_KEYS, TOPIC_KEYS
from penstock.common.logs import logger_named
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.model import setting_text

if TYPE_CHECKING:
    from penstock.broker.config.release_settings import ReleaseSettings

logger = logger_named("penstock.broker")

(
    SOURCE_TOPIC,
    SOURCE_DYNAMIC_BROKER,
    SOURCE_DYNAMIC_DEFAULT,
    SOURCE_STATIC_BROKER,
    SOURCE_DEFAULT,
    SOURCE_LOGGER,
    SOURCE_METRICS,
    SOURCE_GROUP,
) = range(1, 9)
"""The sources of a setting's value, with the numbers that DescribeConfigs uses for them."""

_INTEGER_LIMITS = {INT: INT_MAX, SHORT: 2**15 - 1, LONG: LONG_MAX}

Value = bool | int | float | str | list[str] | None


class Setting(NamedTuple):
    """One value of a setting and its source. `name` is the synonym that was set, which has its own unit."""

    name: str
    text: str | None
    source: int


def parse(key: ConfigKey, text: str | None) -> Value:
    """Convert the text of a setting to its type.

    Raises:
        ConfigError: the text does not fit the type, the choices or the bounds of the key.
    """
    if text is None:
        return None
    if key.type == BOOLEAN:
        lowered = text.strip().lower()
        if lowered not in ("true", "false"):
            raise _invalid(key, text, "expected true or false")
        return lowered == "true"
    if key.type in _INTEGER_LIMITS:
        return _parse_integer(key, text)
    if key.type == DOUBLE:
        try:
            number = float(text)
        except ValueError:
            raise _invalid(key, text, "expected a number") from None
        return _bounded(key, text, number)
    if key.type == LIST:
        items = [item.strip() for item in text.split(",") if item.strip()]
        for item in items:
            _check_choice(key, item)
        if key.item_pattern and items != ["*"] and not all(map(compile_(key.item_pattern).fullmatch, items)):
            raise _invalid(key, text, "expected * or PARTITION:BROKER,PARTITION:BROKER,...")
        return items
    _check_choice(key, text)
    return text


def _parse_integer(key: ConfigKey, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise _invalid(key, text, "expected a whole number") from None
    limit = _INTEGER_LIMITS[key.type]
    if not -limit - 1 <= number <= limit:
        raise _invalid(key, text, f"Value must be no more than {limit}")
    _bounded(key, text, number)
    return number


def _bounded(key: ConfigKey, text: str, number: float) -> float:
    if key.at_least is not None and number < key.at_least:
        raise _invalid(key, text, f"Value must be at least {key.at_least}")
    if key.at_most is not None and number > key.at_most:
        raise _invalid(key, text, f"Value must be no more than {key.at_most}")
    if number == key.never:
        raise _invalid(key, text, f"{text} is not among the values that it has")
    return number


def _check_choice(key: ConfigKey, text: str) -> None:
    if key.choices and (text.lower() if key.is_any_case else text) not in key.choices:
        raise _invalid(key, text, f"String must be one of: {', '.join(key.choices)}")


def _invalid(key: ConfigKey, text: str, reason: str) -> ConfigError:
    return ConfigError(f"Invalid value {text} for configuration {key.name}: {reason}")


def _release_settings(as_version: str) -> ReleaseSettings:
    # Imported here because few brokers behave as an older release, and starting must be fast.
    from penstock.broker.config.release_settings import ReleaseSettings

    return ReleaseSettings(as_version)


TOPIC_CHARACTERS_MAX = 16_384
"""The most characters of all values that are set for one topic."""

SUGGESTIONS_MAX = 3
"""The most unknown names of one request for which a similar name is searched: each takes milliseconds."""

SUGGESTION_CHARACTERS_MAX = 64
"""The longest name for which a similar one is searched: the time grows with the square of the length."""


_NOT_A_DIRECTORY = compile_(r"(?:[\w.-]+|\[[0-9a-fA-F:]+\])(?P<port>:\d+)|\d+(?:\.\d+){1,3}")
"""A pattern for texts that users pass by mistake as the data directory: an address, or a release of
Kafka.
"""

_OURS = "penstock."
"""The prefix of Penstock's settings. An unknown name that begins with it is an error."""


class Suggestions:
    """Counts the unknown names of a request for which a similar name may still be searched."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = SUGGESTIONS_MAX


def unknown_name(name: str, known: Mapping[str, ConfigKey], suggestions: Suggestions) -> ConfigError:
    """Return the error for an unknown name, with a similar known name unless `suggestions` is used up.

    The message begins like Apache Kafka's, which differs between topic settings and broker settings.
    """
    what = "configuration" if known is BROKER_KEYS else "topic config name:"
    hint = ""
    if suggestions.left > 0 and len(name) <= SUGGESTION_CHARACTERS_MAX:
        suggestions.left -= 1
        hint = did_you_mean(name, known)
    return ConfigError(f"Unknown {what} {name}{hint}")


def _is_heeded(name: str, text: str) -> bool:
    """Return True if a setting outside of `BROKER_KEYS` has an effect; raise ConfigError if invalid."""
    # Imported here because few brokers have other settings, and starting must be fast.
    from penstock.broker.config.kafka_keys import key_besides

    if name.startswith(_OURS):
        raise unknown_name(name, BROKER_KEYS, Suggestions())
    key = key_besides(name, text)
    if key is not None:
        parse(key, text)
    return key is not None and key.has_effect


def settings_texts(
    config: Mapping[str, object], keywords: Mapping[str, object], place: str = "Broker"
) -> dict[str, str]:
    """Return a broker's settings as a dict from dotted name to text: `config`, overridden by `keywords`.

    `keywords` are keyword arguments of the class or function `place`, which error messages name.

    Raises:
        ConfigError: a keyword is not a setting; the message has the correct form. Unknown names in `config`
        are allowed, as in a file.
    """
    named = {name.replace("_", "."): value for name, value in keywords.items()}
    for name in named:
        if name not in BROKER_KEYS:
            from penstock.broker.config.kafka_keys import is_known

            if not is_known(name):
                from penstock.common.habits.refusals import refuse_keywords

                refuse_keywords(f"{place}.__init__", keywords)
                raise unknown_name(name, BROKER_KEYS, Suggestions())
    return {name: setting_text(value) for name, value in {**config, **named}.items()}


def check_data_dir(data_dir: object) -> None:
    """Check that the first argument of a broker is the path of a directory.

    Raises:
        ConfigError: `data_dir` is not a path, or is text that looks like an address or a release of Kafka.
    """
    if data_dir is not None and not isinstance(data_dir, (str, os.PathLike)):
        raise ConfigError(
            f"data_dir is {data_dir!r}: the path of a directory is needed; write port= for a port"
        )
    if isinstance(data_dir, str) and (meant := _NOT_A_DIRECTORY.fullmatch(data_dir)):
        what = "host= and port= for an address" if meant["port"] else "as_version= for a release of Kafka"
        raise ConfigError(
            f"data_dir is {data_dir!r}: write {what}; a directory of that name is './{data_dir}'"
        )


def log_unheeded(config: BrokerConfig, places: Mapping[str, str] | None = None) -> None:
    """Log warnings about settings without effect. `places` is a dict from setting to ``PATH:LINE``."""
    if config.unheeded:
        from penstock.broker.config.server_properties import remarks

        for remark in remarks(config.unheeded, places):
            logger.warning("%s", remark)


_BOUNDED = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")


def _check_group_keys(kind: str, integer: Callable[[str], int]) -> None:
    """Check that a group type's settings do not contradict each other. `integer` returns a setting's value.

    Raises:
        ConfigError: a value is outside of its bounds, or the heartbeat interval exceeds the session timeout.
    """
    for name in _BOUNDED:
        value = integer(f"group.{kind}.{name}")
        least, most = integer(f"group.{kind}.min.{name}"), integer(f"group.{kind}.max.{name}")
        if not least <= value <= most:
            raise ConfigError(
                f"group.{kind}.{name} is {value}, which is not between group.{kind}.min.{name} ({least}) "
                f"and group.{kind}.max.{name} ({most})"
            )
    heartbeat = integer(f"group.{kind}.heartbeat.interval.ms")
    if heartbeat >= integer(f"group.{kind}.session.timeout.ms"):
        raise ConfigError(
            f"group.{kind}.heartbeat.interval.ms is {heartbeat}, which has to be less than "
            f"group.{kind}.session.timeout.ms"
        )


class BrokerConfig:
    """The settings of a broker; Kafka's defaults apply to all settings that are not set.

    `settings` are those at the start of the broker. `dynamic` and `dynamic_defaults` override them: clients
    have set these for this broker and for all brokers (KIP-226). With `as_version`, the defaults are those of
    a release of Kafka.

    Unknown names are ignored, as in Apache Kafka, and so are settings without effect: the
    broker logs both when it starts (`log_unheeded`).

    Raises:
        ConfigError: a value is invalid, or an unknown name has the prefix of Penstock's own settings or of
        security settings.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, as_version: str | None = None) -> None:
        self.settings: dict[str, str] = {}
        self.release = _release_settings(as_version) if as_version is not None else None
        """The names and defaults of settings in the Kafka release as which the broker behaves; None for
        the newest release.
        """
        unknown = RETIRED_KEYS if self.release is None else self.release.unknown
        self.topic_keys = {name: key for name, key in TOPIC_KEYS.items() if name not in unknown}
        """The definitions of the topic settings that the release has."""
        self.unheeded: list[str] = []
        """The names of settings in the configuration that are unknown, or known but without effect."""
        for name, text in (settings or {}).items():
            key = BROKER_KEYS.get(name)
            if key is not None:
                parse(key, text)
            elif not _is_heeded(name, text):
                self.unheeded.append(name)
            if key is not None and not key.has_effect:
                self.unheeded.append(name)
            self.settings[name] = text
        self.dynamic: Mapping[str, str] = {}
        self.dynamic_defaults: Mapping[str, str] = {}
        for kind in ("consumer", "share"):
            if any(name.startswith(f"group.{kind}.") for name in self.settings):
                _check_group_keys(kind, self.integer)
        self.started_with: dict[str, str] = {}
        """Settings that come from arguments of the broker, such as its address. Only DescribeConfigs
        reads this dict.
        """

    def with_dynamic(self, own: Mapping[str, str], defaults: Mapping[str, str]) -> BrokerConfig:
        """Return these settings, overridden by `own` (for this broker) and `defaults` (for all brokers).

        The two mappings are read at every access to a setting, so that changes in the mappings apply at once.
        """
        config: BrokerConfig = object.__new__(type(self))
        config.__dict__.update(self.__dict__)
        config.dynamic, config.dynamic_defaults = own, defaults
        return config

    def behaves_since(self, *numbers: int) -> bool:
        """Return True if the broker behaves as this Kafka release or a newer one; (4, 4) is release 4.4."""
        return self.release is None or self.release.numbers >= numbers

    def __getitem__(self, name: str) -> Value:
        return parse(BROKER_KEYS[name], self.text(name))

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting that always has one."""
        value = self[name]
        if not isinstance(value, int):
            raise ConfigError(f"Configuration {name} has no value")
        return value

    def boolean(self, name: str) -> bool:
        return self[name] is True

    def text(self, name: str) -> str | None:
        """Return a setting's effective text, or None if it is not set and has no default."""
        for texts in (self.dynamic, self.dynamic_defaults, self.settings):
            if name in texts:
                return texts[name]
        return self.default(name)

    def default(self, name: str) -> str | None:
        """Return the default of a setting as text, for the Kafka release as which the broker behaves."""
        if self.release is not None and name in self.release.defaults:
            return self.release.defaults[name]
        return BROKER_KEYS[name].default

    def set_texts(self, name: str) -> Iterator[Setting]:
        """Yield every value that was set for this name, the effective value first."""
        for texts, source in (
            (self.dynamic, SOURCE_DYNAMIC_BROKER),
            (self.dynamic_defaults, SOURCE_DYNAMIC_DEFAULT),
            (self.settings, SOURCE_STATIC_BROKER),
            (self.started_with, SOURCE_STATIC_BROKER),
        ):
            if name in texts:
                yield Setting(name, texts[name], source)

    @property
    def node_id(self) -> int:
        """The value of `node.id`, or of `broker.id` if only the older name was set."""
        older = self["broker.id"]
        if "node.id" not in self.settings and isinstance(older, int) and older >= 0:
            return older
        return self.integer("node.id")

    @property
    def names_node(self) -> bool:
        """True if the settings contain the node's id. If False, the id in the data directory applies."""
        return "node.id" in self.settings or "broker.id" in self.settings

    @property
    def data_dir(self) -> str | None:
        """The first data directory, or None for a broker that keeps everything in memory."""
        return next(iter(self.data_dirs), None)

    @property
    def data_dirs(self) -> list[str]:
        """The data directories, each once; empty for a broker that keeps everything in memory."""
        text = self.text("log.dirs") or self.text("log.dir") or ""
        return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))

    def settings_of(self, name: str, key: ConfigKey | None = None) -> Iterator[Setting]:
        """Yield every value of the setting, the effective value first, the default last.

        The caller must pass `key` if the setting is not in `BROKER_KEYS`.
        """
        yield from self.set_texts(name)
        default = self.default(name) if key is None or name in BROKER_KEYS else key.default
        if default is not None:
            yield Setting(name, default, SOURCE_DEFAULT)


MIN_LAG, MAX_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"


class TopicConfig:
    """The settings of one topic: set for the topic, else set for the broker, else Kafka's default.

    The values that every Produce or Fetch request needs are attributes, computed once.

    Raises:
        ConfigError: a name is unknown, or a value is invalid.
    """

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "broker",
        "codec_name",
        "compacted",
        "deletes_old",
        "down_conversion",
        "flushes",
        "inspects_records",
        "keeps_offsets",
        "log_append_time",
        "max_message_bytes",
        "min_insync_replicas",
        "overrides",
        "segment_bytes",
        "stored_magic",
    )

    def __init__(
        self,
        broker: BrokerConfig,
        overrides: Mapping[str, str] | None = None,
        suggestions: Suggestions | None = None,
    ) -> None:
        self.broker = broker
        self.overrides: dict[str, str] = {}
        for name, text in (overrides or {}).items():
            key = broker.topic_keys.get(name)
            if key is None:
                raise unknown_name(name, broker.topic_keys, suggestions or Suggestions())
            parse(key, text)
            self.overrides[name] = text
        self.max_message_bytes = self.integer("max.message.bytes")
        internal = self["internal.segment.bytes"]
        self.segment_bytes = internal if isinstance(internal, int) else self.integer("segment.bytes")
        self.log_append_time = self["message.timestamp.type"] == "LogAppendTime"
        self.before_max_ms = self.integer("message.timestamp.before.max.ms")
        self.after_max_ms = self.integer("message.timestamp.after.max.ms")
        self.keeps_offsets = self["penstock.keep.offsets"] is True
        self.min_insync_replicas = self.integer("min.insync.replicas")
        self.down_conversion = self["message.downconversion.enable"] is True
        self.stored_magic = 2 if broker.release is None else broker.release.stored_magic
        self.flushes = min(self.integer("flush.messages"), self.integer("flush.ms")) < LONG_MAX
        self.codec_name = str(self["compression.type"])
        policy = self["cleanup.policy"]
        self.compacted = isinstance(policy, list) and "compact" in policy
        self.inspects_records = self.compacted or self.codec_name != "producer"
        self.deletes_old = isinstance(policy, list) and "delete" in policy

    def check_together(self) -> None:
        """Check that the settings do not contradict each other; called before they are stored.

        Raises:
            ConfigError: the settings contradict each other.
        """
        if MIN_LAG in self.overrides or MAX_LAG in self.overrides:
            least, most = self.integer(MIN_LAG), self.integer(MAX_LAG)
            if least > most:
                raise ConfigError(f"conflict topic config setting {MIN_LAG} ({least}) > {MAX_LAG} ({most})")

    def __getitem__(self, name: str) -> Value:
        return parse(TOPIC_KEYS[name], self.text(name))

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""
        value = self[name]
        if not isinstance(value, int):
            raise ConfigError(f"Configuration {name} has no value")
        return value

    def text(self, name: str) -> str | None:
        """Return the text of a setting's effective value, in the unit of the topic setting."""
        if name in self.overrides:
            return self.overrides[name]
        key = TOPIC_KEYS[name]
        for synonym, factor in key.synonyms:
            for setting in self.broker.set_texts(synonym):
                text = str(setting.text)
                return text if factor == 1 else str(_scaled(int(text), factor))
        release = self.broker.release
        if release is not None and key.synonyms and key.synonyms[0][0] in release.defaults:
            return release.defaults[key.synonyms[0][0]]
        return key.default

    def settings(self, name: str) -> list[Setting]:
        """Return every value of a setting, the effective value first.

        As in Apache Kafka, values in another unit (`log.retention.hours`) are left out if none is set in the
        setting's own unit.
        """
        key = TOPIC_KEYS[name]
        found = [Setting(name, self.overrides[name], SOURCE_TOPIC)] if name in self.overrides else []
        for synonym, _ in key.synonyms[:1]:
            found += self.broker.settings_of(synonym)
        if any(setting.source != SOURCE_TOPIC for setting in found):
            for synonym, _ in key.synonyms[1:]:
                found += self.broker.settings_of(synonym)
        return sorted(found, key=_source)

    def source(self, name: str) -> int:
        """Return the source of a setting's effective value, which may have been set in another unit."""
        if name in self.overrides:
            return SOURCE_TOPIC
        found = [
            setting for synonym, _ in TOPIC_KEYS[name].synonyms for setting in self.broker.set_texts(synonym)
        ]
        return found[0].source if found else SOURCE_DEFAULT


def _source(setting: Setting) -> int:
    return setting.source


def canonical(key: ConfigKey, text: str | None) -> str | None:
    """Return the text of a setting in Apache Kafka's canonical form: parse it, and format the value."""
    value = parse(key, text)
    if value is None:
        return None
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _java_double(number: float) -> str:
    """Return a number in Java's notation: 0.5, 1.0E10."""
    if not isfinite(number):
        return {inf: "Infinity", -inf: "-Infinity"}.get(number, "NaN")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    shortest = next(short for size in range(1, 18) if float(short := f"{number:.{size}e}") == number)
    digits, _, exponent = shortest.partition("e")
    return f"{digits}E{int(exponent)}"


def _scaled(number: int, factor: int) -> int:
    """Convert hours or minutes to milliseconds. A negative number, which means "never", is not converted."""
    return number if number < 0 else number * factor
