"""Assignors, under Kafka's names: they divide partitions among the members of a group."""

from __future__ import annotations

import importlib

from penstock.client.assignors.base import Assignor as Assignor
from penstock.common.suggestions import did_you_mean

_HOMES = {
    "range": ("range_roundrobin", "RangeAssignor"),
    "roundrobin": ("range_roundrobin", "RoundRobinAssignor"),
    "sticky": ("sticky", "StickyAssignor"),
    "cooperative-sticky": ("sticky", "CooperativeStickyAssignor"),
}
NAMES = tuple(_HOMES)


def assignor_named(name: str) -> Assignor:
    """Return the assignor with this name: ``cooperative-sticky`` or another of Kafka's, or a Java class name.

    Raises:
        ValueError: there is no assignor of this name.
    """
    short = name.strip()
    for known, (_, class_name) in _HOMES.items():
        if short == class_name or short == f"org.apache.kafka.clients.consumer.{class_name}":
            short = known
    if short not in _HOMES:
        raise ValueError(f"expected some of {', '.join(NAMES)}{did_you_mean(short, NAMES, 3, quoted=True)}")
    module, class_name = _HOMES[short]
    made: Assignor = getattr(importlib.import_module(f"{__name__}.{module}"), class_name)()
    return made
