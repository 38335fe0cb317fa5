"""Compares answers of a broker with recorded answers: error codes, and lengths of lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_response import ERROR_CODES
from penstock.protocol.message import Message
from penstock.testing.replay.walking import Names, fields_of, layout_of

UNCOMPARED = frozenset(
    (
        *("brokers", "replica_nodes", "isr_nodes", "offline_replicas", "eligible_leader_replicas"),
        *("last_known_elr", "node_endpoints", "api_keys", "supported_features", "finalized_features"),
        *("aborted_transactions", "enabled_mechanisms", "mechanisms", "synonyms", "configs"),
    )
)
"""Lists in answers that describe the cluster, not the result of a request. Their lengths are not compared."""

_TITLES = ("name", "topic", "group_id", "key", "transactional_id", "user", "resource_name")
_NUMBERS = ("partition_index", "index", "partition", "partition_id")


class Difference(NamedTuple):
    """One difference between an answer of the replay's target and the recorded answer."""

    number: int
    """The number of the request in the recording, from 0; -1 if the difference concerns all requests."""
    request: str
    """The API and version of the request, such as ``Produce v9``."""
    path: str
    """The path of the field in the answer, such as ``responses[orders].partition_responses[0].error_code``.
    """
    recorded: object
    answered: object

    def __str__(self) -> str:
        place = f"request {self.number}, " if self.number >= 0 else ""
        return f"{place}{self.request}: {self.path} was {self.recorded}, is {self.answered}"


def compare(
    recorded: Message, answered: Message, version: int, old_names: Names, new_names: Names
) -> Iterator[tuple[str, object, object]]:
    """Yield path, recorded value and new value of each difference between two answers.

    Error codes are compared, and the lengths of all lists except those in `UNCOMPARED`. Entries of lists are
    paired by name or number; `old_names` and `new_names` give the names of topics that have only an id.
    """
    if recorded.API_KEY == ApiKey.FETCH:  # which partitions have an entry depends on time
        layout = layout_of(recorded, version)
        yield from _compare(layout, recorded, answered, "", old_names, new_names, both_only=True)
        return
    yield from _compare(layout_of(recorded, version), recorded, answered, "", old_names, new_names)


def _compare(
    layout: Any, one: Any, other: Any, path: str, old: Names, new: Names, both_only: bool = False
) -> Iterator[tuple[str, object, object]]:
    for field in fields_of(layout):
        name = field.attribute
        left, right = getattr(one, name), getattr(other, name)
        here = f"{path}.{name}".lstrip(".")
        if name in ERROR_CODES:
            if left != right:
                yield here, left, right
        elif field.is_array and name not in UNCOMPARED:
            yield from _lists(field.layout, left or (), right or (), here, old, new, both_only)
        elif field.layout is not None and not field.is_array and None not in (left, right):
            yield from _compare(field.layout, left, right, here, old, new, both_only)


def _lists(
    layout: Any, left: Any, right: Any, path: str, old: Names, new: Names, both_only: bool
) -> Iterator[tuple[str, object, object]]:
    if len(left) != len(right) and not both_only:
        yield f"{path}, entries", len(left), len(right)
    if layout is None:
        return
    given = {_title(each, index, new): each for index, each in enumerate(right)}
    for index, each in enumerate(left):
        title = _title(each, index, old)
        if title in given:
            yield from _compare(layout, each, given[title], f"{path}[{title}]", old, new, both_only)


def _title(struct: Any, index: int, names: Names) -> object:
    """Return the name or number of an entry of a list, or its position in the list.

    Members of groups have different ids at another broker: they are paired by their positions.
    """
    for attribute in _TITLES:
        found = getattr(struct, attribute, None)
        if found:
            return found
    topic_id = getattr(struct, "topic_id", None)
    if topic_id and topic_id in names:
        return names[topic_id]
    for attribute in _NUMBERS:
        if hasattr(struct, attribute):
            return getattr(struct, attribute)
    return index
