"""Tests that a broker has every attribute that a handler's protocol class requires."""

from __future__ import annotations

import importlib
from typing import Any

from broker.bench_node import make_node
from for_each import for_each
from penstock.broker.handlers import OFFERED
from penstock.broker.requests.dispatch import Dispatching

MODULES = sorted({offer.module or key.name.lower() for key, offer in OFFERED.items()})


def named_in(protocol: type[Any]) -> set[str]:
    """Return the names of the public attributes and methods that a protocol class declares."""
    found: set[str] = set()
    for base in protocol.__mro__:
        if base.__module__.startswith("penstock."):
            found |= {
                name for name in (*vars(base), *vars(base).get("__annotations__", ())) if name[0] != "_"
            }
    return found


@for_each(MODULES)
def test_a_broker_has_what_a_handler_names(name: str) -> None:
    module = importlib.import_module(f"penstock.broker.handlers.{name}")
    protocols = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and getattr(value, "_is_protocol", 0)
    ]
    node = make_node()
    for protocol in (*protocols, Dispatching):
        if protocol.__module__.startswith("penstock."):
            missing = [each for each in named_in(protocol) if not hasattr(node, each)]
            assert missing == [], protocol
