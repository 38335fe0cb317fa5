"""The interface of a wire type, and the layout of a struct at one version: its fields and their wire types.

The wire types themselves are in `penstock.protocol.compiler.wire_types`, those of structs in
`penstock.protocol.compiler.struct_types`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from penstock.protocol.compiler.decode_emitter import DecodeEmitter
from penstock.protocol.compiler.emitter import INT16, INT32, UVARINT, HeadKind
from penstock.protocol.compiler.encode_emitter import EncodeEmitter
from penstock.protocol.schema.definition import FieldSpec, StructSpec


class Length:
    """The encoding of the length or count before a value. A special length can stand for null."""

    def __init__(self, kind: HeadKind, bias: int) -> None:
        self.kind = kind
        self.bias = bias
        self.null = bias - 1

    def of(self, local: str) -> str:
        """Return a Python expression for the length or count to send before the value in `local`."""
        return f"len({local}) + 1" if self.bias else f"len({local})"

    def is_present(self, sent: str) -> str:
        """Return Python source of a condition: true if the length `sent` is of a value, false for null."""
        return sent if self.bias else f"{sent} >= 0"

    def expect_null(self, out: DecodeEmitter, sent: str, nullable: bool) -> None:
        """Write code that raises DecodeError for a negative length that is not an allowed null."""
        if not nullable:
            out.line(out.refuse("null or of negative length"))
        elif not self.bias:
            out.line(f"if {sent} != -1:")
            out.line(f"    {out.refuse('of negative length')}")


COMPACT = Length(UVARINT, 1)
SHORT = Length(INT16, 0)
LONG = Length(INT32, 0)


class StepKind(Enum):
    """The kinds of `Step`: each says how to skip a part of an encoded value without decoding it."""

    BYTES = auto()
    """The part is a fixed number of bytes: `Step.size`."""
    VARINT = auto()
    TEXT = auto()
    """The part is a length, and that number of bytes."""
    FIXED_ARRAY = auto()
    """The part is a count, and that number of elements of `Step.size` bytes each."""
    ARRAY = auto()
    """The part is a count, and that number of elements, which are skipped one by one."""
    NULLABLE = auto()
    """The part is a byte, and, if that byte is not negative, a struct."""
    TAGS = auto()
    OTHER = auto()
    """The part is a value that the function `Step.skip` skips."""


class Step(NamedTuple):
    """An instruction to skip one part of an encoded value, without decoding it."""

    kind: StepKind
    size: int = 0
    """The size of the part, or of one element, in bytes."""
    length: Length | None = None
    """The encoding of the length or count that precedes the part."""
    inner: Sequence[Step] = ()
    """The steps that skip an element or a struct."""
    skip: Callable[[memoryview, int], int] | None = None
    """A function ``skip(frame, position)`` that returns the position after the value, or raises IndexError or
    ValueError."""


class WireType(ABC):
    """The encoding of a field's values in bytes, and the generator of code for them."""

    is_array = False
    """True if values are lists. If the elements are structs, `struct` describes them."""

    is_null_allowed = False
    """True if null can be encoded for the value."""

    @property
    @abstractmethod
    def guide_name(self) -> str:
        """The type's name in Kafka's protocol guide: ``INT32``, ``[INT32]``, or the name of a struct."""

    @property
    @abstractmethod
    def shape(self) -> tuple[object, ...]:
        """A key for comparisons: equal for types with the same encoding, even if their structs differ."""

    @property
    def element_name(self) -> str:
        """The name that Kafka's protocol guide gives the element type of an array; otherwise `guide_name`."""
        return self.guide_name

    @property
    def struct(self) -> StructLayout | None:
        """The struct of a value, or of each element of an array; None for types without structs."""
        return None

    @abstractmethod
    def decode(self, out: DecodeEmitter, target: str) -> None:
        """Write code that decodes a value into `target`."""

    @abstractmethod
    def encode(self, out: EncodeEmitter, value: str) -> None:
        """Write code that encodes the value of the Python expression `value`."""

    @abstractmethod
    def problem(self, value: Any) -> str | None:
        """Return None if `value` can be encoded, else the path of the wrong part, a colon, and the reason."""

    @abstractmethod
    def steps(self) -> list[Step]:
        """Return steps that skip a value without decoding it. Request limits use these to count entries."""

    def decode_array(self, out: DecodeEmitter, target: str, sent: str, length: Length) -> None:
        """Write code that decodes elements into the list `target`. The local `sent` has their count."""
        out.flush()
        count = self.checked_count(out, sent, length)
        items, item = out.name("items"), out.name("item")
        out.line(f"{target} = {items} = []")
        # Most arrays of structs are short: this asks less of them than a loop over a range.
        with out.block(f"while len({items}) < {count}:"):
            self.decode(out, item)
            out.flush()
            out.line(f"{items}.append({item})")

    def checked_count(self, out: DecodeEmitter, sent: str, length: Length) -> str:
        """Write code that checks a count before memory is allocated for it; return the count's local."""
        count = out.name("count")
        out.line(f"{count} = {sent} - 1" if length.bias else f"{count} = {sent}")
        out.line(f"if not 0 <= {count} <= size - pos:")
        out.line(f"    {out.refuse('count of elements is negative, null or beyond the data')}")
        return count

    def encode_array(self, out: EncodeEmitter, items: str, sent: str, length: Length) -> None:
        """Write code that encodes the elements of the local `items`; the code for their count precedes."""
        item = out.name("item")
        with out.block(f"for {item} in {items}:"):
            self.encode(out, item)

    def encode_compact_array(self, out: EncodeEmitter, value: str) -> bool:
        """Write one expression for count and elements, if possible; return True if it was written."""
        return False

    @property
    def holds_records(self) -> bool:
        """True if a value contains record batches, which are decoded as views, without a copy."""
        return False

    @property
    def holds_blobs(self) -> bool:
        """True if a value contains bytes or records, which may be too large to copy."""
        return False


class PlacedField:
    """A field of a struct at one version: its specification and its wire type."""

    __slots__ = ("spec", "wire")

    def __init__(self, spec: FieldSpec, wire: WireType) -> None:
        self.spec = spec
        self.wire = wire


class StructLayout:
    """A struct at one version: its fields in wire order, its tagged fields, and the fields that it lacks."""

    __slots__ = ("absent", "fields", "flexible", "spec", "structs", "tagged", "version")

    def __init__(
        self, spec: StructSpec, structs: dict[str, StructSpec], version: int, flexible: bool
    ) -> None:
        self.spec = spec
        self.structs = structs
        self.version = version
        self.flexible = flexible
        self.fields: list[PlacedField] = []
        self.tagged: list[tuple[int, PlacedField]] = []
        self.absent: list[FieldSpec] = []

    @property
    def holds_records(self) -> bool:
        return any(wire.holds_records for wire in self._wires())

    @property
    def holds_blobs(self) -> bool:
        return any(wire.holds_blobs for wire in self._wires())

    def steps(self) -> list[Step]:
        """Return the steps that skip a struct; adjacent steps over fixed numbers of bytes are joined."""
        steps: list[Step] = []
        for field in self.fields:
            for step in field.wire.steps():
                if steps and step.kind is steps[-1].kind is StepKind.BYTES:
                    steps[-1] = Step(StepKind.BYTES, steps[-1].size + step.size)
                else:
                    steps.append(step)
        if self.flexible:
            steps.append(Step(StepKind.TAGS))
        return steps

    def _wires(self) -> list[WireType]:
        return [field.wire for field in [*self.fields, *(each for _, each in self.tagged)]]
