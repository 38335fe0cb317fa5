"""Subject name strategies: they choose the subject of the schema of a topic's keys or values."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import ConfigError

KEY = "key"
VALUE = "value"

SubjectStrategy = Callable[[str, str, str | None], str]
"""A function of topic, field (`KEY` or `VALUE`) and the record's full name that returns the subject."""


def topic_subject(topic: str, field: str = VALUE, record: str | None = None) -> str:
    """Return ``<topic>-<field>``, the default subject of all serializers."""
    return f"{topic}-{field}"


def record_subject(topic: str, field: str = VALUE, record: str | None = None) -> str:
    """Return the full name of the record as the subject.

    Raises:
        ConfigError: the schema has no record name.
    """
    if not record:
        raise ConfigError(f"the schema of topic {topic!r} has no name: use the subject strategy topic")
    return record


def topic_record_subject(topic: str, field: str = VALUE, record: str | None = None) -> str:
    """Return ``<topic>-<full name of the record>`` as the subject.

    Raises:
        ConfigError: the schema has no record name.
    """
    return f"{topic}-{record_subject(topic, field, record)}"


STRATEGIES: dict[str, SubjectStrategy] = {
    "topic": topic_subject,
    "record": record_subject,
    "topic-record": topic_record_subject,
}


def strategy_named(name: str | SubjectStrategy) -> SubjectStrategy:
    """Return a subject name strategy by its name; return a function unchanged.

    Raises:
        ConfigError: there is no strategy of that name.
    """
    if callable(name):
        return name
    plain = str(name).lower().replace("_", "-")
    if plain not in STRATEGIES:
        raise ConfigError(f"there is no subject strategy {name!r}: give one of {', '.join(STRATEGIES)}")
    return STRATEGIES[plain]
