"""A schema registry in memory for tests, which counts the calls of each function."""

from __future__ import annotations

import uuid
from collections import Counter

from penstock.registry.client import RegistryError
from penstock.registry.schemas import RegisteredSchema, Schema


class FakeRegistry:
    """A schema registry in memory, with schemas by id; `asked` counts the calls."""

    id_bytes = 4

    def __init__(self) -> None:
        self.schemas: dict[int, Schema] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: Counter[object] = Counter()

    def add(self, subject: str, schema: Schema) -> int:
        number = len(self.schemas) + 1
        self.schemas[number] = schema
        self.subjects.setdefault(subject, []).append(number)
        return number

    def guid_of(self, number: int) -> str:
        return str(uuid.UUID(int=number))

    def schema_by_id(self, schema_id: int) -> Schema:
        self.asked[schema_id] += 1
        if schema_id not in self.schemas:
            raise RegistryError(404, 40403, "Schema not found")
        return self.schemas[schema_id]

    def schema_by_guid(self, guid: str) -> Schema:
        return self.schema_by_id(uuid.UUID(guid).int)

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        self.asked[subject] += 1
        found = self.subjects.get(subject)
        if not found:
            raise RegistryError(404, 40401, f"Subject '{subject}' not found.")
        place = len(found) if version == "latest" else int(version)
        return RegisteredSchema(subject, place, found[place - 1], self.schemas[found[place - 1]])

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        return {each.name: self.version(each.subject, each.version).schema for each in schema.references}
