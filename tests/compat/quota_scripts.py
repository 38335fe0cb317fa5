"""Request scripts about client quotas. Tests run each against two brokers and compare the answers."""

from __future__ import annotations

from typing import Any

from compat.scripts import script
from compat.transcript import Talk

CLIENT, USER, IP = "client-id", "user", "ip"
PRODUCED, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION, CONNECTION = "controller_mutation_rate", "connection_creation_rate"
EXACT, DEFAULT, ANY = range(3)

Parts = list[tuple[str, str | None]]
Ops = list[tuple[str, float | None]]


def entry_of(parts: Parts, ops: Ops) -> dict[str, Any]:
    """Return an AlterClientQuotas entry for an entity. An operation whose value is None removes the quota."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in parts],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def alter(t: Talk, version: int, *entries: tuple[Parts, Ops], only: bool = False) -> None:
    tree = {"entries": [entry_of(*entry) for entry in entries], "validate_only": only}
    t.ask("AlterClientQuotas", version, tree)
    t.settle()


def describe(t: Talk, *components: tuple[str, int, str | None]) -> None:
    parts = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    t.each("DescribeClientQuotas", *({"components": parts, "strict": strict} for strict in (False, True)))


@script
def quotas(t: Talk) -> None:
    one, other = t.name("one"), t.name("other")
    user = t.name("user")
    for version in t.versions("AlterClientQuotas"):
        alter(t, version, ([(CLIENT, one)], [(PRODUCED, 1e6), (TIME, 50.5)]))
        alter(t, version, ([(CLIENT, one), (USER, user)], [(FETCHED, 2e6)]))
        alter(t, version, ([(USER, user), (CLIENT, None)], [(FETCHED, 3e6)]), ([(USER, user)], [(TIME, 9.0)]))
        alter(t, version, ([(USER, None), (CLIENT, one)], [(FETCHED, 1e9)]))
        describe(t)
        for kind, name in ((CLIENT, one), (CLIENT, other), (CLIENT, ""), (USER, user), (IP, "1.2.3.4")):
            describe(t, (kind, EXACT, name))
        for kind in (CLIENT, USER, IP, "nonsense", ""):
            for how in (DEFAULT, ANY, 9):
                describe(t, (kind, how, None))
        describe(t, (CLIENT, EXACT, one), (USER, EXACT, user))
        describe(t, (CLIENT, DEFAULT, None), (USER, ANY, None))
        describe(t, (CLIENT, ANY, None), (CLIENT, ANY, None))
        describe(t, (CLIENT, ANY, None), (IP, ANY, None))
        describe(t, (CLIENT, EXACT, None))
        describe(t, (CLIENT, DEFAULT, "x"))
        bad: list[tuple[Parts, Ops]] = [
            ([(CLIENT, one)], [("nonsense", 1.0)]),
            ([(CLIENT, one)], [(CONNECTION, 1.0)]),
            ([(IP, "1.2.3.4")], [(PRODUCED, 1.0)]),
            ([(IP, "1.2.3.4"), (CLIENT, one)], [(CONNECTION, 1.0)]),
            ([(USER, user), (IP, "1.2.3.4")], [(PRODUCED, 1.0)]),
            ([("nonsense", "x")], [(PRODUCED, 1.0)]),
            ([], [(PRODUCED, 1.0)]),
            ([(CLIENT, "")], [(PRODUCED, 1.0)]),
            ([(CLIENT, one)], [(PRODUCED, 1.0), (PRODUCED, 2.0)]),
        ]
        sizes = (-1.0, 0.5, 1.5, 1e300, float("inf"), 1000000.0000000001)
        bad += [([(CLIENT, other)], [(PRODUCED, value)]) for value in sizes]
        bad += [([(CLIENT, other)], [(TIME, value)]) for value in (-1.0, 0.5, 1e9)]
        bad.append(([(CLIENT, other)], [(MUTATION, 5.0)]))
        bad.append(([(IP, "1.2.3.4")], [(CONNECTION, 500.0)]))
        for parts, ops in bad:
            for only in (True, False):
                alter(t, version, (parts, ops), only=only)
        describe(t, (CLIENT, EXACT, other))
        alter(t, version, ([(CLIENT, one)], [(TIME, 2.0)]), ([(CLIENT, one)], [(TIME, 3.0)]))
        alter(t, version, ([(CLIENT, one)], [(TIME, 2.0)]), ([(CLIENT, other)], [("nonsense", 3.0)]))
        alter(t, version, ([(CLIENT, one)], []))
        every: Ops = [(key, None) for key in (PRODUCED, FETCHED, TIME, MUTATION, "nonsense")]
        names: list[Parts] = [[(CLIENT, one)], [(CLIENT, other)], [(CLIENT, one), (USER, user)]]
        names += [[(USER, user), (CLIENT, None)], [(USER, user)], [(USER, None), (CLIENT, one)]]
        for entity in names:
            for only in (True, False):
                alter(t, version, (entity, every), only=only)
        alter(t, version, ([(IP, "1.2.3.4")], [(CONNECTION, None)]))
        describe(t)
