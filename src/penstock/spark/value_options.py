"""Options for keys and values with a schema: formats, the registry, and the handling of invalid bytes.

Names and values are checked without a registry. Independent of brokers and Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.common.suggestions import nearest
from penstock.errors import ConfigError
from penstock.security.secrets import Secret, is_secret_name
from penstock.spark.option_values import choice, count

REGISTRY_PREFIX = "schema.registry."
"""The prefix of options for the registry. It is followed by the name of a setting of Confluent's registry
clients."""

FIELDS = ("key", "value")
FORMATS = ("bytes", "avro", "json", "protobuf")
WRITTEN_FORMATS = ("bytes", "avro", "json", "protobuf")

_BOTH_PARTS = ("format", "schema", "message")
_READ_PARTS = ("subject", "version", "invalid", "raw", "newVersion")
SERIALIZER_SETTINGS = (
    "auto.register.schemas",
    "normalize.schemas",
    "use.latest.version",
    "use.schema.id",
    "subject.name.strategy",
)
"""Settings of serializers, which are options of the sink with ``key.`` or ``value.`` in front."""

BOTH_NAMES = tuple(f"{field}.{part}" for field in FIELDS for part in _BOTH_PARTS)
READ_NAMES = tuple(f"{field}.{part}" for field in FIELDS for part in _READ_PARTS)
WRITE_NAMES = tuple(f"{field}.{part}" for field in FIELDS for part in SERIALIZER_SETTINGS)


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """The options for reading keys, or for reading values.

    `invalid`: "keep" rows that cannot be decoded (with the reason), "drop" them or "fail" on the first.
    `raw`: bytes of "invalid" rows only, or of "all". `new_version`: "resolve" values of a newer schema into
    the reader's, or "fail".
    """

    field: str
    format: str
    schema: str | None = None
    subject: str | None = None
    version: int | None = None
    message: str | None = None
    invalid: str = "keep"
    raw: str = "invalid"
    new_version: str = "resolve"
    max_outage_ms: int = 0
    """The time in milliseconds for which a task waits for a registry that does not answer."""


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """The options for keys and values with schemas.

    `registry` has the settings of a registry client; None without a registry."""

    fields: tuple[FieldOptions, ...]
    registry: tuple[tuple[str, str | Secret], ...] | None


@dataclass(frozen=True, slots=True)
class WrittenField:
    """The options for writing keys or values: format, schema text (None if not given), serializer settings.

    `message` is the full name of a Protobuf message of the schema, None for the file's first.
    """

    field: str
    format: str
    schema: str | None
    settings: tuple[tuple[str, object], ...]
    registry: tuple[tuple[str, str | Secret], ...]
    message: str | None = None


def read_value_options(
    given: Mapping[str, str], topic: str | None, max_outage_ms: int = 0
) -> ValueOptions | None:
    """Return the options for keys and values, or None if both stay bytes.

    `topic` is the topic to read, None if there may be several. Tasks wait `max_outage_ms` for a
    registry that does not answer.

    Raises:
        ConfigError: an option is malformed, missing, or contradicts another one.
    """
    registry = _registry(given)
    fields = tuple(
        replace(found, max_outage_ms=max_outage_ms)
        for field in FIELDS
        if (found := _read_field(field, given, topic, registry is not None))
    )
    if fields and given.get("cloudevents", "off").lower() != "off":
        raise ConfigError(f"{fields[0].field}.format and cloudevents contradict each other; keep one")
    if registry is not None and not fields:
        raise ConfigError("schema.registry.url needs value.format or key.format, such as 'avro'")
    return ValueOptions(fields, registry) if fields else None


def _read_field(
    field: str, given: Mapping[str, str], topic: str | None, has_registry: bool
) -> FieldOptions | None:
    name = f"{field}.format"
    kind = choice(given, name, FORMATS)
    if kind == "bytes":
        for part in ("schema", *_READ_PARTS):
            if f"{field}.{part}" in given:
                raise ConfigError(f"{field}.{part} needs the option {name}, such as 'avro'")
        return None
    schema, subject = given.get(f"{field}.schema"), given.get(f"{field}.subject")
    version, message = count(given, f"{field}.version"), given.get(f"{field}.message")
    if message is not None and kind != "protobuf":
        raise ConfigError(f"{field}.message means something only with {name} = protobuf")
    if schema is not None and (subject is not None or version is not None):
        raise ConfigError(f"{field}.schema and {field}.subject contradict each other; keep one")
    if schema is None:
        if not has_registry:
            raise ConfigError(
                f"{name} needs schema.registry.url, or {field}.schema: the text of the schema that wrote them"
            )
        if subject is None and topic is None:
            raise ConfigError(
                f"{name} with more than one topic needs {field}.subject, or {field}.schema: the columns have "
                "one schema"
            )
        subject = subject or f"{topic}-{field}"
    new_version = choice(given, f"{field}.newVersion", ("resolve", "fail"))
    if new_version == "fail" and subject is None:
        raise ConfigError(f"{field}.newVersion = fail needs {field}.subject, whose versions count")
    return FieldOptions(
        field,
        kind,
        schema,
        subject,
        version,
        message,
        choice(given, f"{field}.invalid", ("keep", "drop", "fail")),
        choice(given, f"{field}.raw", ("invalid", "all")),
        new_version,
    )


def write_value_options(given: Mapping[str, str]) -> tuple[WrittenField, ...]:
    """Return the options for each field (key, value) that the sink encodes with a schema.

    Raises:
        ConfigError: an option is malformed, missing, or contradicts another one.
    """
    registry = _registry(given)
    found = []
    for field in FIELDS:
        kind = choice(given, f"{field}.format", WRITTEN_FORMATS)
        settings = {
            name: given[f"{field}.{name}"] for name in SERIALIZER_SETTINGS if f"{field}.{name}" in given
        }
        schema = given.get(f"{field}.schema")
        message = given.get(f"{field}.message")
        if message is not None and kind != "bytes" and (kind != "protobuf" or schema is None):
            raise ConfigError(f"{field}.message names a message of {field}.schema in format protobuf")
        if kind == "bytes":
            parts = [part for part in _BOTH_PARTS[1:] if f"{field}.{part}" in given]
            for name in (*settings, *reversed(parts)):
                raise ConfigError(f"{field}.{name} needs the option {field}.format, such as 'avro'")
            continue
        if registry is None:
            raise ConfigError(f"{field}.format needs schema.registry.url, where the schema is registered")
        found.append(
            WrittenField(
                field,
                kind,
                schema,
                tuple((name, _setting(field, name, text)) for name, text in settings.items()),
                registry,
                message,
            )
        )
    if registry is not None and not found:
        raise ConfigError("schema.registry.url needs value.format or key.format, such as 'avro'")
    return tuple(found)


def _setting(field: str, name: str, text: str) -> object:
    if name == "subject.name.strategy":
        return text
    if name == "use.schema.id":
        return count({f"{field}.{name}": text}, f"{field}.{name}")
    return choice({f"{field}.{name}": text}, f"{field}.{name}", ("true", "false")) == "true"


def _registry(given: Mapping[str, str]) -> tuple[tuple[str, str | Secret], ...] | None:
    named = {
        name.removeprefix(REGISTRY_PREFIX): text
        for name, text in given.items()
        if name.startswith(REGISTRY_PREFIX)
    }
    return registry_settings(named, REGISTRY_PREFIX) if named else None


def registry_settings(named: Mapping[str, str], prefix: str = "") -> tuple[tuple[str, str | Secret], ...]:
    """Return the settings of a registry's client, sorted, with secrets hidden from `repr`.

    Error messages put `prefix` before the names of settings, as in the names of options.

    Raises:
        ConfigError: a setting is unknown, or the URL is missing.
    """
    from penstock.registry.client import SETTINGS

    found: dict[str, str | Secret] = {}
    for setting, text in named.items():
        if setting not in SETTINGS:
            near = nearest(setting, SETTINGS)
            advice = (
                f"did you mean {prefix + near[0]!r}?" if near else f"there are {', '.join(sorted(SETTINGS))}"
            )
            raise ConfigError(f"unknown setting of a registry {prefix + setting!r}; {advice}")
        is_secret = is_secret_name(setting) or setting == "basic.auth.user.info"
        found[setting] = Secret(text) if is_secret else text
    if not found.get("url"):
        raise ConfigError(f"a registry needs {prefix}url, as in http://localhost:8081")
    return tuple(sorted(found.items(), key=lambda each: each[0]))
