"""Parse the values of options: numbers, durations, choices, offsets as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from penstock.errors import ConfigError
from penstock.model import TopicPartition

_DURATION_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def count(given: Mapping[str, str], name: str, least: int = 1) -> int | None:
    """Return the value of an option as a whole number, or None if the option is not given.

    Raises:
        ConfigError: the text is not a whole number, or is less than `least`.
    """
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{name} takes a whole number from {least}, not {text!r}")
    return int(text)


def flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    """Return True if an option is "true", False if it is "false", `default` if it is not given.

    Raises:
        ConfigError: the text is neither "true" nor "false".
    """
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is 'true' or 'false', not {given[name]!r}")
    return text == "true"


def choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Return the value of an option, one of `choices`; the first of them if the option is not given.

    Raises:
        ConfigError: the text is not one of `choices`.
    """
    text = given.get(name, choices[0]).lower()
    if text not in choices:
        raise ConfigError(f"{name} is one of {', '.join(choices)}, not {given[name]!r}")
    return text


def duration_ms(option: str, text: str) -> int:
    """Return the milliseconds of a duration in the notation of Spark and Kafka: 500ms, 10s, 15m, 1h.

    Raises:
        ConfigError: the text is not a duration in this notation.
    """
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
    if match is None or (match[2] or "ms") not in _DURATION_MS:
        raise ConfigError(f"{option} takes a duration like 500ms, 10s or 15m, not {text!r}")
    return int(int(match[1]) * _DURATION_MS[match[2] or "ms"])


def offsets_by_partition(text: str, option: str, lowest: int) -> dict[TopicPartition, int]:
    """Return a dict from partition to offset or time, parsed from JSON text; each is at least `lowest`.

    Raises:
        ConfigError: the text has another form.
    """
    shape = f'{option} takes JSON like {{"topic": {{"0": 23, "1": 42}}}}'
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in json_object(text, shape).items():
        if not isinstance(partitions, dict):
            raise ConfigError(f"{shape}, not {text!r}")
        for partition, offset in partitions.items():
            if not partition.isdecimal() or not is_count(offset, lowest):
                raise ConfigError(f"{shape}; {topic!r}, {partition!r}: {offset!r} does not fit")
            offsets[TopicPartition(topic, int(partition))] = offset
    if not offsets:
        raise ConfigError(f"{option} names no partition")
    return offsets


def json_object(text: str, shape: str) -> dict[str, object]:
    """Return the JSON object in `text`. Error messages begin with `shape`, the expected form in words.

    Raises:
        ConfigError: the text is not a JSON object.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ConfigError(f"{shape}, not {text!r}")
    return document


def is_count(value: object, least: int = 0) -> bool:
    """Return True if a JSON value is a whole number and at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
