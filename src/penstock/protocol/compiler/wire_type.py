"""The contract of a wire type, and a struct at one version: its fields, each with its wire type.

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
    """The length or count that comes first, at once with the mark for null."""

    def __init__(self, kind: HeadKind, bias: int) -> None:
        self.kind = kind
        self.bias = bias
        self.null = bias - 1

    def of(self, local: str) -> str:
        """Return an expression for what is sent for a value."""
        return f"len({local}) + 1" if self.bias else f"len({local})"

    def is_present(self, sent: str) -> str:
        """Return a condition: a value follows."""
        return sent if self.bias else f"{sent} >= 0"

    def expect_null(self, out: DecodeEmitter, sent: str, nullable: bool) -> None:
        """The lines for what is no length: it must be the mark for null, where null is allowed."""
        if not nullable:
            out.line(out.refuse("null or of negative length"))
        elif not self.bias:
            out.line(f"if {sent} != -1:")
            out.line(f"    {out.refuse('of negative length')}")


COMPACT = Length(UVARINT, 1)
SHORT = Length(INT16, 0)
LONG = Length(INT32, 0)


class StepKind(Enum):
    """What there is to step over in the bytes of a value."""

    BYTES = auto()
    """So many bytes."""
    VARINT = auto()
    TEXT = auto()
    """A length, and as many bytes."""
    FIXED_ARRAY = auto()
    """A count, and as many elements of the same size."""
    ARRAY = auto()
    """A count, and as many elements, each stepped over by itself."""
    NULLABLE = auto()
    """A mark of one byte, and a struct if it is not negative."""
    TAGS = auto()
    OTHER = auto()
    """What a function steps over."""


class Step(NamedTuple):
    """One step over the bytes of a value that is not decoded."""

    kind: StepKind
    size: int = 0
    """The bytes, or the bytes of one element."""
    length: Length | None = None
    """How the length or count is sent."""
    inner: Sequence[Step] = ()
    """The steps over an element or a struct."""
    skip: Callable[[memoryview, int], int] | None = None
    """skip(frame, position) returns the position behind the value; it raises IndexError or ValueError."""


class WireType(ABC):
    """A way to put a value into bytes."""

    is_array = False
    """Whether values are lists, of elements that `struct` describes where they are structs."""

    is_null_allowed = False
    """Whether null can be written for the value."""

    @property
    @abstractmethod
    def guide_name(self) -> str:
        """What Kafka's protocol guide calls the type; structs by their name, arrays by what is in them."""

    @property
    @abstractmethod
    def shape(self) -> tuple[object, ...]:
        """Equal for types of the same bytes. Names and fields of structs are left aside."""

    @property
    def element_name(self) -> str:
        """The guide's name of one element of a list; of anything else the name itself."""
        return self.guide_name

    @property
    def struct(self) -> StructLayout | None:
        """The struct that a value, or each element of it, is; None where that is none."""
        return None

    @abstractmethod
    def decode(self, out: DecodeEmitter, target: str) -> None:
        """Write the lines that read a value into `target`."""

    @abstractmethod
    def encode(self, out: EncodeEmitter, value: str) -> None:
        """Write the lines that append the value of the expression `value`."""

    @abstractmethod
    def problem(self, value: Any) -> str | None:
        """Return why `value` cannot be written, if so: the path below it if it has parts, a colon, the
        reason.
        """

    @abstractmethod
    def steps(self) -> list[Step]:
        """Return the steps over a value that is not decoded: limits on requests count entries before any is
        made.
        """

    def decode_array(self, out: DecodeEmitter, target: str, sent: str, length: Length) -> None:
        """Write the lines that read elements into the list `target`. `sent` holds what announced them."""
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
        """Write the lines that make sure of a count before anything is made for it."""
        count = out.name("count")
        out.line(f"{count} = {sent} - 1" if length.bias else f"{count} = {sent}")
        out.line(f"if not 0 <= {count} <= size - pos:")
        out.line(f"    {out.refuse('count of elements is negative, null or beyond the data')}")
        return count

    def encode_array(self, out: EncodeEmitter, items: str, sent: str, length: Length) -> None:
        """Write the lines that append the elements of the local `items`, after their count."""
        item = out.name("item")
        with out.block(f"for {item} in {items}:"):
            self.encode(out, item)

    def encode_compact_array(self, out: EncodeEmitter, value: str) -> bool:
        """Write count and elements in one, where this type can do that; whether it did."""
        return False

    @property
    def holds_records(self) -> bool:
        """Whether record batches are somewhere inside, which are handed out uncopied."""
        return False

    @property
    def holds_blobs(self) -> bool:
        """Whether bytes or records are somewhere inside, which may be too large to copy."""
        return False


class PlacedField:
    """A field at one version: its specification and its wire type there."""

    __slots__ = ("spec", "wire")

    def __init__(self, spec: FieldSpec, wire: WireType) -> None:
        self.spec = spec
        self.wire = wire


class StructLayout:
    """A struct at one version: its fields in wire order, the tagged ones, and those it lacks."""

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
        """Return the steps over a struct, those over bytes of a fixed number put together."""
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
