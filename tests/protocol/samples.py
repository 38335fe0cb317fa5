"""Messages filled with chance values, biased towards the edges. The same seed gives the same message."""

from __future__ import annotations

import random
import sys

from penstock.protocol.definition import INTEGER_BITS, Definition, FieldSpec, FieldType, StructSpec

TEXTS = ("", "t", "topic-1", "ünï", "x" * 126, "y" * 127, "z" * 300, "\0")
BLOBS = (b"", b"\0", b"\xff" * 5, bytes(range(256)), b"q" * 127)


def sample(message_class: type, definition: Definition, version: int, seed: int):
    """A message with every field that `version` has set, most of them away from their default."""
    return _Filler(sys.modules[message_class.__module__], definition, version, seed).struct(definition.root)


class _Filler:
    def __init__(self, module, definition: Definition, version: int, seed: int) -> None:
        self.module, self.definition, self.version = module, definition, version
        self.random = random.Random(f"{definition.name} {version} {seed}")
        self.depth = 0

    def struct(self, spec: StructSpec):
        self.depth += 1
        value = getattr(self.module, spec.name)()
        for field in spec.fields:
            if self.version in field.versions:
                is_tagged = self.version in field.tagged
                if not is_tagged or self.random.random() < 0.5:
                    setattr(value, field.attribute, self.field(field))
        if self.version in self.definition.flexible and self.random.random() < 0.2:
            known = {field.tag for field in spec.fields}
            tags = [tag for tag in self.random.sample((7, 8, 30, 127, 128, 2**31 - 1), 2) if tag not in known]
            value.unknown_tags = {tag: self.random.choice(BLOBS) for tag in sorted(tags)}
        self.depth -= 1
        return value

    def field(self, field: FieldSpec):
        if self.version in field.nullable and self.random.random() < 0.25:
            return None
        field_type = field.type_at(self.version)
        if not field_type.is_array:
            return self.one(field_type)
        counts = (0, 1, 1, 2, 3) if field_type.is_struct else (0, 1, 2, 5, 20)
        count = self.random.choice(counts[: 5 - self.depth] or (1,))
        if field_type.is_struct and self.random.random() < 0.08:
            return [self.one(field_type)] * 12 + [self.one(field_type)]
        if not field_type.is_struct and self.random.random() < 0.03:
            count = 200
        return [self.one(field_type) for _ in range(count)]

    def one(self, field_type: FieldType):
        base, chance = field_type.base, self.random
        if base in INTEGER_BITS:
            return self.integer(base)
        if base == "bool":
            return chance.random() < 0.5
        if base == "float64":
            return chance.choice((0.0, -1.5, 1e300, 12.34))
        if base == "uuid":
            return chance.randbytes(16)
        if base == "string":
            return chance.choice(TEXTS)
        if base in ("bytes", "records"):
            return chance.choice(BLOBS)
        return self.struct(self.definition.structs[base])

    def integer(self, base: str) -> int:
        bits = INTEGER_BITS[base]
        low, high = (0, 2**bits - 1) if base.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        edges = [edge for edge in (low, -1, 0, 1, 63, 64, 127, 128, 8191, 16384, high) if low <= edge <= high]
        return self.random.choice([*edges, self.random.randint(low, high)])
