"""Checks of the arguments of the client's public calls, so that errors name the argument and its value.

Without these checks, one topic name instead of a list of names would be split into letters, and a number
given as text would fail deep inside the client. Every check returns its argument in the type that the client
works with. The decorator `checked` applies checks to a method. Arguments of calls that are made for every
record are checked where they are used.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from operator import index
from typing import Any, TypeVar

from penstock.common.suggestions import short_repr
from penstock.errors import ConfigError
from penstock.model import TopicPartition

T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])

Check = Callable[[Any, str], Any]
"""A function that gets an argument's value, and its name for error messages. The function returns the value
to use, or raises `ConfigError`.
"""


def checked(**checks: Check) -> Callable[[Call], Call]:
    """Return a decorator that passes the named arguments of a method through the given check functions.

        @checked(user=text, iterations=whole)
        async def set_password(self, user: str, ..., iterations: int = 4096) -> None:

    For a coroutine function, errors are raised when the coroutine is awaited, like its own errors.
    """

    def decorate(call: Call) -> Call:
        names = list(inspect.signature(call).parameters)
        missing = checks.keys() - set(names)
        if missing:
            raise TypeError(f"{call.__qualname__} has no arguments {', '.join(sorted(missing))}")

        def looked_at(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
            return (
                [
                    checks[name](value, name) if name in checks else value
                    for name, value in zip_longest(names[: len(args)], args)
                ],
                {
                    name: checks[name](value, name) if name in checks else value
                    for name, value in keywords.items()
                },
            )

        async def looks_first_async(*args: Any, **keywords: Any) -> Any:
            positional, named = looked_at(args, keywords)
            return await call(*positional, **named)

        def looks_first(*args: Any, **keywords: Any) -> Any:
            positional, named = looked_at(args, keywords)
            return call(*positional, **named)

        is_async = inspect.iscoroutinefunction(call)
        made: Any = functools.wraps(call)(looks_first_async if is_async else looks_first)
        checking: Call = made
        return checking

    return decorate


def size(value: object, what: str) -> int:
    """Return a whole number above 0.

    Raises:
        ConfigError: `value` is something else.
    """
    number = whole(value, what)
    if number < 1:
        raise ConfigError(f"{what} is {number}: at least 1 is needed")
    return number


def optional(check: Check) -> Check:
    """Return a check that accepts None, and applies `check` to every other value."""
    return lambda value, what: None if value is None else check(value, what)


def one_of(*words: str) -> Check:
    """Return a check that accepts one of several words."""

    def look(value: object, what: str) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ConfigError(f"{what} is {short_repr(value)}: one of {', '.join(words)} is needed")

    return look


def instance_of(kind: type[Any]) -> Check:
    """Return a check that accepts an instance of one class."""

    def look(value: object, what: str) -> Any:
        if isinstance(value, kind):
            return value
        raise ConfigError(f"{what} is {short_repr(value)}: a {kind.__name__} is needed")

    return look


def list_of(check: Check, example: str) -> Check:
    """Return a check that accepts a list, applies `check` to every item, and refuses a single text."""

    def look(values: object, what: str) -> list[Any]:
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise ConfigError(f"{what} is {short_repr(values)}: a list is needed, such as {example}")
        return [check(value, f"one of {what}") for value in values]

    return look


def function(value: object, what: str) -> Any:
    """Return `value`, which must be callable.

    Raises:
        ConfigError: `value` is something else.
    """
    if callable(value):
        return value
    raise ConfigError(f"{what} is {short_repr(value)}: a function is needed")


def whole(value: object, what: str) -> int:
    """Return a whole number: an int, or a numpy integer as an int.

    Raises:
        ConfigError: `value` is something else, such as text or a boolean.
    """
    if type(value) is int:
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"{what} is {short_repr(value)}: a whole number is needed") from None


def broker_id(value: object, what: str) -> int:
    """Return the id of a broker.

    Raises:
        ConfigError: `value` is not a whole number of at least 0.
    """
    number = whole(value, what)
    if number < 0:
        raise ConfigError(f"{what} is {number}: the id of a broker is needed, 0 or more")
    return number


def milliseconds(value: object, what: str) -> float:
    """Return a duration in milliseconds, with or without a fraction.

    Raises:
        ConfigError: `value` is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{what} is {short_repr(value)}: a number of milliseconds is needed")
    return value


SECONDS_MAX = 100.0
"""The limit below which `poll_ms` takes a float with at most two decimals, such as 1.0, for a time in
seconds, and refuses it.
"""


def poll_ms(value: object, what: str) -> float:
    """Return the maximum time of a poll in milliseconds, with or without a fraction.

    In other clients the unit is seconds. A loop around ``poll(1.0)`` would use a whole processor core, since
    the call returns after 1 ms. So a float that looks like seconds (below 100, with at most two decimals) is
    refused. A time computed as the remainder of a longer one has more decimals, and is accepted.

    Raises:
        ConfigError: `value` is not a number, or looks like seconds.
    """
    number = milliseconds(value, what)
    if type(number) is float and 0 < number < SECONDS_MAX and round(number, 2) == number:
        whole_ms = f", or {number:.0f} for {number:g} ms" if number.is_integer() else ""
        raise ConfigError(
            f"{what} is {number!r}, in milliseconds: write {number * 1000:g} for {number:g} s{whole_ms}"
        )
    return number


def time_ms(value: object, what: str) -> int:
    """Return a time in milliseconds since 1970, from a whole number or a `datetime`.

    A `datetime` without a zone is local time.

    Raises:
        ConfigError: `value` is something else.
    """
    if type(value) is int:
        return value
    if hasattr(value, "tzinfo"):
        from datetime import datetime

        from penstock.moments import moment_ms

        if isinstance(value, datetime):
            return moment_ms(value, 0)
    try:
        return whole(value, what)
    except ConfigError:
        raise ConfigError(
            f"{what} is {short_repr(value)}: "
            "milliseconds since 1970 are needed, as a whole number, or a datetime"
        ) from None


def flag(value: object, what: str) -> bool:
    """Return True or False. No other value is accepted, since ``"no"`` would count as true.

    Raises:
        ConfigError: `value` is something else.
    """
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{what} is {short_repr(value)}: True or False is needed")


def text(value: object, what: str) -> str:
    """Return text that is not empty.

    Raises:
        ConfigError: `value` is something else.
    """
    if isinstance(value, str) and value:
        return value
    raise ConfigError(f"{what} is {short_repr(value)}: text is needed")


def seconds(value: object, what: str) -> float | None:
    """Return a duration in seconds, or None for no limit.

    Raises:
        ConfigError: `value` is not a number.
    """
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise ConfigError(f"{what} is {short_repr(value)}: a number of seconds is needed, or None for no limit")


def mapping(example: str) -> Check:
    """Return a check that accepts a mapping. `example` is shown in its error message."""

    def look(values: object, what: str) -> Mapping[Any, Any]:
        if isinstance(values, Mapping):
            return values
        raise ConfigError(f"{what} is {short_repr(values)}: a mapping is needed, such as {example}")

    return look


def topic_name(value: object, what: str = "") -> str:
    """Return the name of a topic.

    Raises:
        ConfigError: `value` is not text, or is empty.
    """
    if isinstance(value, str) and value:
        return value
    raise ConfigError(f"{short_repr(value)} is no name of a topic: it must be text, such as 'orders'")


def names(values: object, call: str, kind: str = "topic") -> list[str]:
    """Return names as a list.

    Raises:
        ConfigError: `values` is one name and not a list, or an item is not a name.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ConfigError(
            f"{call} takes a list of {kind} names, not {short_repr(values)}: write [{short_repr(values)}]"
        )
    found = list(values)
    for name in found:
        if not isinstance(name, str) or not name:
            raise ConfigError(
                f"{short_repr(name)} is no name of a {kind}: {call} takes a list of names, as text"
            )
    return found


def topic_partition(value: Any) -> TopicPartition:
    """Return one partition, given as `TopicPartition` or as (topic, number).

    Raises:
        ConfigError: `value` is neither.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], str):
        return TopicPartition(value[0], whole(value[1], f"the partition of topic {value[0]!r}"))
    raise ConfigError(
        f"{short_repr(value)} is no partition: write TopicPartition('orders', 0), or ('orders', 0)"
    )


def topic_partitions(values: object, call: str) -> list[TopicPartition]:
    """Return partitions as a list.

    Raises:
        ConfigError: `values` is one partition and not a list, or an item is no partition.
    """
    is_one = isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], str)
    if is_one or isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ConfigError(
            f"{call} takes a list of partitions, such as [('orders', 0)], not {short_repr(values)}"
        )
    return [topic_partition(value) for value in values]


def by_partition(values: object, call: str) -> dict[TopicPartition, Any]:
    """Return a mapping from partitions to any values, with `TopicPartition` as keys.

    Raises:
        ConfigError: `values` is not a mapping, or a key is no partition.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{call} takes a mapping, such as {{('orders', 0): 42}}, not {short_repr(values)}")
    return {topic_partition(tp): value for tp, value in values.items()}


def partition_numbers(values: object) -> list[int]:
    """Return partition numbers of one topic as a list; a single number counts as a list of one.

    Raises:
        ConfigError: `values` is something else.
    """
    if isinstance(values, int) and not isinstance(values, bool):
        return [values]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ConfigError(f"partitions is {short_repr(values)}: numbers are needed, such as [0, 1]")
    return [whole(value, "a partition") for value in values]


def column_names(values: object, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of a topic's columns in the order given; a single name counts as a list of one.

    Raises:
        ConfigError: an item is no name, or is not one of the `known` columns.
    """
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise ConfigError(f"columns is {short_repr(values)}: a list of names is needed, such as ['value']")
    chosen = (values,) if isinstance(values, str) else tuple(values)
    for name in chosen:
        if name not in known:
            raise ConfigError(f"a topic has no column {short_repr(name)}; it has {', '.join(known)}")
    return chosen


def topics_or_pattern(
    topics: str | re.Pattern[str] | Iterable[str], call: str = "subscribe()"
) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """Return topic names and None, or no names and a compiled pattern.

    A pattern is given compiled, or, as in librdkafka, as text that begins with ``^``. `call` is the name of
    the caller in error messages.

    Raises:
        ConfigError: `topics` is neither.
    """
    if isinstance(topics, re.Pattern):
        return (), topics
    names = (topics,) if isinstance(topics, str) else tuple(topics) if isinstance(topics, Iterable) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(
            f"{call} takes the names of topics, or a pattern for them, not {short_repr(topics)}"
        )
    if not names[0].startswith("^"):
        return names, None
    if len(names) > 1:
        raise ConfigError(f"{call} takes names, or one pattern; join patterns with |")
    try:
        return (), re.compile(names[0])
    except re.error as error:
        raise ConfigError(f"{names[0]!r} is no pattern: {error}") from None
