"""Compare the sizes of a sample message in different integer encodings, field by field, as KIP-625 does.

Every integer of 16, 32 or 64 bits can be sent at fixed width, as a zig-zag varint, or as an unsigned
varint of its two's complement. Lengths, counts and tags are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.struct_types import has_default
from penstock.protocol.compiler.wire_type import StructLayout
from penstock.protocol.compiler.wire_types import VARINT_TYPES
from penstock.protocol.message import Message, Struct
from penstock.protocol.schema.definition import FIXED, SIGNED, UNSIGNED, FieldType, StructSpec
from penstock.protocol.schema.scalar_types import INTEGER_BITS


class FieldCost(NamedTuple):
    """An integer field's number of values in a sample message, and their total bytes in each encoding."""

    path: str
    type: str
    values: int
    fixed: int
    zigzag: int
    unsigned: int
    now: int

    @property
    def best(self) -> str:
        """The encoding with the fewest bytes; "fixed" if no other is smaller."""
        costs = {FIXED: self.fixed, SIGNED: self.zigzag, UNSIGNED: self.unsigned}
        return min(costs, key=lambda encoding: costs[encoding])

    def cost(self, encoding: str) -> int:
        """Return the field's bytes in one encoding: ``fixed``, ``signed`` (zig-zag) or ``unsigned``."""
        return {FIXED: self.fixed, SIGNED: self.zigzag, UNSIGNED: self.unsigned}[encoding]


class Sizes(NamedTuple):
    """The sizes in bytes of each integer field of a sample message, and of all its other parts together."""

    fields: list[FieldCost]
    other_bytes: int
    bytes_now: int

    def total(self, encoding: str | Callable[[FieldCost], str]) -> int:
        """Return the message's bytes if all integers have one encoding, or if each field has its best."""
        choose = encoding if callable(encoding) else lambda _: encoding
        return self.other_bytes + sum(field.cost(choose(field)) for field in self.fields)

    @property
    def best_bytes(self) -> int:
        return self.total(lambda field: field.best)


def measure(message: Message, version: int) -> Sizes:
    """Return the bytes of each integer field of a message in each encoding, in definition order.

    Raises:
        EncodeError: the message cannot be encoded at this version.
        UnsupportedVersionError: there is no such version.
    """
    codec = codec_for(type(message), version)
    size = len(codec.encode(message))
    values: dict[str, tuple[FieldType, list[int]]] = {}
    _collect(codec.layout, codec.layout.spec, message, "", values)
    fields = [_cost(path, field_type, numbers) for path, (field_type, numbers) in values.items()]
    return Sizes(fields, size - sum(field.now for field in fields), size)


def _collect(
    layout: StructLayout,
    spec: StructSpec,
    struct: Struct,
    path: str,
    values: dict[str, tuple[FieldType, list[int]]],
) -> None:
    """Add the integers of a struct to `values`, a dict by path; skip tagged fields that are not written."""
    for field in spec.fields:
        if layout.version not in field.versions:
            continue
        if layout.version in field.tagged and has_default(layout, field, struct):
            continue
        value = getattr(struct, field.attribute)
        here = f"{path}.{field.name[:1].lower()}{field.name[1:]}".lstrip(".")
        field_type = field.type_at(layout.version)
        items = list(value or ()) if field_type.is_array else [] if value is None else [value]
        if field_type.base in layout.structs:
            for item in items:
                _collect(layout, layout.structs[field_type.base], item, here, values)
        elif field_type.is_integer:
            values.setdefault(here, (field_type, []))[1].extend(items)


def _cost(path: str, field_type: FieldType, numbers: list[int]) -> FieldCost:
    base = field_type.base
    fixed = INTEGER_BITS[base] // 8 * len(numbers)
    costs = {FIXED: fixed, SIGNED: fixed, UNSIGNED: fixed}
    for encoding in (SIGNED, UNSIGNED):
        varint = VARINT_TYPES.get((base, encoding))
        if varint is not None:
            costs[encoding] = sum(len(varint.kind.write(number)) for number in numbers)
    now = costs[field_type.encoding]
    return FieldCost(path, base, len(numbers), fixed, costs[SIGNED], costs[UNSIGNED], now)


def columns(sizes: Sizes) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table of sizes: headings, a row for every field, the totals."""
    yield ("field", "type", "values", "fixed", "zig-zag", "unsigned", "cheapest")
    for field in sizes.fields:
        costs = (field.values, field.fixed, field.zigzag, field.unsigned)
        best = {FIXED: "fixed", SIGNED: "zig-zag", UNSIGNED: "unsigned"}[field.best]
        yield (field.path, field.type, *map(str, costs), best)
    other = str(sizes.other_bytes)
    yield ("everything else", "", "", other, other, other, other)
    totals = (sizes.total(FIXED), sizes.total(SIGNED), sizes.total(UNSIGNED), sizes.best_bytes)
    yield ("whole message", "", "", *map(str, totals))
