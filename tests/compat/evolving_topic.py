"""A topic of JSON records whose fields change between writes, and the table rows expected from it."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa

from penstock import write_topic

WIDER = {"int": "bigint", "float": "double", "struct<a:int>": "struct<a:int,b:string>"}
"""A dict from a type to the wider type that a field may change to; the last adds a nested field."""

TYPES = ("int", "bigint", "float", "double", "string", "boolean", "array<int>", "struct<a:int>")
PARTITIONS = 2
RECORDS = 40
CHANGES = ("add", "widen", "rename", "drop")


class EvolvingTopic:
    """The generator of the topic: it writes records, and computes the rows that a table must have.

    `kinds` are the kinds of schema changes that the table supports.
    """

    def __init__(self, seed: str, servers: str, kinds: tuple[str, ...] = CHANGES) -> None:
        self._drawn = random.Random(seed)
        self._servers = servers
        self._kinds = kinds
        self._made = 0
        self._types: dict[str, str] = {}
        self._next = [0] * PARTITIONS
        self.rows: list[dict[str, Any]] = []
        """Every record as a row of the current columns, in the order in which the records were written."""
        for kind in TYPES[:4] if "widen" in kinds else TYPES:
            self._add(kind)

    @property
    def fields(self) -> str:
        """The current fields in the syntax of the option `--fields`."""
        return ", ".join(f"{name} {kind}" for name, kind in self._types.items())

    @property
    def latest(self) -> list[dict[str, Any]]:
        """The rows of a table in upsert mode: the last row of each key."""
        return list({row["key"]: row for row in self.rows if row["key"] is not None}.values())

    def change(self) -> dict[str, Any]:
        """Make one random schema change; return the table settings that carry it out, such as renames."""
        kind = self._drawn.choice(self._kinds)
        if kind == "widen" and (narrow := [name for name in self._types if self._types[name] in WIDER]):
            name = self._drawn.choice(narrow)
            self._types[name] = WIDER[self._types[name]]
            if self._types[name].startswith("struct"):
                for row in self.rows:
                    if row[name] is not None:
                        row[name] = {**row[name], "b": None}
        elif kind == "rename":
            old, new = self._drawn.choice(list(self._types)), self._name()
            self._types = {new if name == old else name: each for name, each in self._types.items()}
            for row in self.rows:
                row[new] = row.pop(old)
            return {"renames": {old: new}}
        elif kind == "drop" and len(self._types) > 2:
            name = self._drawn.choice(list(self._types))
            del self._types[name]
            for row in self.rows:
                del row[name]
            return {"drops": (name,)}
        else:
            self._add(self._drawn.choice(TYPES))
        return {}

    def write(self) -> None:
        """Write records with the current fields, any of which a record may lack."""
        made = []
        for _ in range(RECORDS):
            partition = self._drawn.randrange(PARTITIONS)
            # A key is of one partition, as producers see to it.
            key = b"k%d-%d" % (partition, self._drawn.randrange(8))
            value = {name: self._value(kind) for name, kind in self._types.items()}
            self.rows.append({"partition": partition, "offset": self._next[partition], "key": key, **value})
            self._next[partition] += 1
            sent = {name: each for name, each in value.items() if each is not None}
            made.append((key, json.dumps(sent).encode(), partition))
        keys, values, partitions = zip(*made, strict=True)
        table = {"key": keys, "value": values, "partition": pa.array(partitions, pa.int32())}
        write_topic(pa.table(table), "orders", bootstrap_servers=self._servers)

    def _add(self, kind: str) -> None:
        name = self._name()
        self._types[name] = kind
        for row in self.rows:
            row[name] = None

    def _name(self) -> str:
        self._made += 1
        return f"f{self._made}"

    def _value(self, kind: str) -> Any:
        drawn = self._drawn
        if drawn.random() < 0.2:
            return None
        if kind in ("int", "bigint"):
            bound = 2**31 - 1 if kind == "int" else 2**63 - 1
            return drawn.choice([0, bound, -bound - 1, drawn.randrange(-1000, 1000)])
        if kind in ("float", "double"):
            return drawn.randrange(-4000, 4000) / 8
        if kind == "boolean":
            return drawn.random() < 0.5
        if kind == "string":
            return drawn.choice(["", "Ærø", "a b", "x" * 100])
        if kind == "array<int>":
            return [drawn.randrange(10) for _ in range(drawn.randrange(4))]
        return {"a": drawn.randrange(10), **({"b": "inside"} if "b:" in kind else {})}


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table by partition and offset, without the column `timestamp`."""
    names = [name for name in table.column_names if name != "timestamp"]
    return in_order([dict(row) for row in table.select(names).to_pylist()])


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows by partition and offset."""
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))
