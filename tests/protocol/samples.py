"""Messages with random field values for tests, biased towards edge cases.

An equal seed gives an equal message.
"""

from __future__ import annotations

import random
import sys

from penstock.protocol.schema.definition import Definition, FieldSpec, FieldType, StructSpec
from penstock.protocol.schema.scalar_types import INTEGER_BITS

TEXTS = ("", "t", "topic-1", "ünï", "x" * 126, "y" * 127, "z" * 300, "\0")
BLOBS = (b"", b"\0", b"\xff" * 5, bytes(range(256)), b"q" * 127)


def sample(message_class: type, definition: Definition, version: int, seed: int):
    """Return a message with random values in all fields of `version`, most of them not the default."""
    return _Filler(sys.modules[message_class.__module__], definition, version, seed).struct(definition.root)


KINDS = ("nulls", "lowest", "highest", "large", "tags")


def extreme(message_class: type, definition: Definition, version: int, kind: str):
    """Return a message with extreme values; `kind` selects which.

    The kinds are nulls in all nullable fields, lowest or highest numbers, long arrays and strings, and
    unknown tagged fields in every struct.
    """
    filler = _Extreme(sys.modules[message_class.__module__], definition, version, kind)
    return filler.struct(definition.root)


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
            tags = [tag for tag in self.random.sample((7, 8, 30, 127, 128, 2**31 - 2), 2) if tag not in known]
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


class _Extreme(_Filler):
    def __init__(self, module, definition: Definition, version: int, kind: str) -> None:
        super().__init__(module, definition, version, 0)
        self.kind = kind
        self.wide = True

    def struct(self, spec: StructSpec):
        value = getattr(self.module, spec.name)()
        for field in spec.fields:
            if self.version in field.versions:
                setattr(value, field.attribute, self.field(field))
        if self.kind == "tags" and self.version in self.definition.flexible:
            value.unknown_tags = {100: b"", 16_384: b"\xff" * 130}
        return value

    def field(self, field: FieldSpec):
        if self.kind == "nulls" and self.version in field.nullable:
            return None
        field_type = field.type_at(self.version)
        if not field_type.is_array:
            return self.one(field_type)
        if self.kind == "large" and self.wide and not field_type.is_struct:
            return [self.one(field_type) for _ in range(1000)]
        if self.kind != "large" or not self.wide:
            return [self.one(field_type)]
        # Long at one level only: three levels of a thousand would be a thousand million.
        self.wide = False
        items = [self.one(field_type) for _ in range(300)]
        self.wide = True
        return items

    def one(self, field_type: FieldType):
        base = field_type.base
        if base == "bool":
            return self.kind != "lowest"
        if base == "float64":
            return {"lowest": -1.7976931348623157e308, "highest": 5e-324}.get(self.kind, 1.5)
        if base == "uuid":
            return bytes(16) if self.kind == "lowest" else b"\xff" * 16
        if base == "string":
            return {"lowest": "", "highest": "\U0001f985" * 40, "large": "x" * 200}.get(self.kind, "t")
        if base in ("bytes", "records"):
            return {"lowest": b"", "large": bytes(range(256)) * (20 if self.wide else 1)}.get(
                self.kind, b"\0"
            )
        return super().one(field_type)

    def integer(self, base: str) -> int:
        bits, signed = INTEGER_BITS[base], not base.startswith("u")
        if self.kind == "lowest":
            return -(2 ** (bits - 1)) if signed else 0
        return 2 ** (bits - signed) - 1 if self.kind == "highest" else 3
