"""A topic with values of three schema versions, its copy decoded by other code, and conditions."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa

from penstock import Producer, read_topic
from penstock.registry import AvroSerializer, DeadLetters, Registry, RegistryClient


def record(*fields: Any) -> str:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if each[2:] else {})} for each in fields
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


VERSIONS = [
    record(("id", "long"), ("offset", "string")),
    record(("id", "long"), ("offset", "string"), ("city", ["null", "string"], None)),
    record(
        ("id", "double"),
        ("offset", "string"),
        ("city", ["null", "string"], None),
        ("tags", {"type": "array", "items": "int"}, []),
    ),
]


def inside(dice: random.Random) -> str:
    """Return a random SQL condition on the fields of values."""
    compare = dice.choice(["=", "<", ">=", "<>"])
    return dice.choice(
        [
            f"id {compare} {dice.randrange(-5, 400)}",
            f"city {compare} '{dice.choice(['Bern', 'Ulm', ''])}'",
            f"city is {dice.choice(['', 'not '])}null",
            f"len(tags) {compare} {dice.randrange(3)}",
            f"value_offset like '%{dice.randrange(10)}'",
            "value_error is not null",
        ]
    )


def fill(topic: str, servers: str, client: RegistryClient, dice: random.Random) -> None:
    """Write values of three schema versions to two partitions, with some that are no Avro, and tombstones."""
    with Producer(servers) as producer:
        for number in range(300):
            schema = VERSIONS[number // 100]
            row: dict[str, Any] = {
                "id": number,
                "offset": f"at {number}",
                "city": dice.choice(["Bern", "Ulm", None]),
                "tags": [1] * dice.randrange(3),
            }
            kept = {each["name"]: row[each["name"]] for each in json.loads(schema)["fields"]}
            value = AvroSerializer(client, schema).bound(topic)(kept)
            producer.send(topic, dice.choice([value] * 8 + [b"no Avro", None]), partition=number % 2)


def decoded_copy(topic: str, servers: str, registry: Registry) -> pa.Table:
    """Return all records with their fields decoded by other code.

    A value that cannot be decoded has the reason instead.
    """
    dead = DeadLetters()
    copy = read_topic(topic, servers, value="avro", registry=registry.url, dead_letters=dead)
    names = [name for name in copy.schema.names if name not in ("value", "headers")]
    fields = copy["value"].combine_chunks()
    columns = dict(zip(fields.type.names, fields.flatten(), strict=True))
    whole = copy.select(names).append_column("value_offset", columns.pop("offset"))
    for name, column in columns.items():
        whole = whole.append_column(name, column)
    lost = dead.table.select(["topic", "partition", "offset"]).append_column(
        "value_error", dead.table["reason"]
    )
    return pa.concat_tables([whole, lost], promote_options="default")
