"""Wire types: the encoding of a field at one version, and the generated code for it.

Each class writes lines of Python through an emitter: `decode` reads the value at `pos` into a
target, `encode` appends the value of an expression. A type begins with its head (see `emitter`), so a
new encoding of integers is one small class here and a line in `VARINT_TYPES`. A new scalar type is a class
here with a line in `WIRE_TYPES`, and one in `penstock.protocol.schema.scalar_types` with a line in `SCALARS`.

`problem` returns why a value cannot be encoded; it runs after a failure, to name the field. Other properties
of a type are here as well: its name in the protocol guide, its shape, its struct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.suggestions import short_repr
from penstock.protocol.compiler import runtime
from penstock.protocol.compiler.decode_emitter import DecodeEmitter
from penstock.protocol.compiler.emitter import (
    INT8,
    INT16,
    INT32,
    RECORDS_BYTES,
    ArrayPart,
    HeadKind,
    fixed_kind,
)
from penstock.protocol.compiler.encode_emitter import EncodeEmitter
from penstock.protocol.compiler.wire_type import (
    COMPACT,
    LONG,
    SHORT,
    Length,
    Step,
    StepKind,
    StructLayout,
    WireType,
)
from penstock.protocol.schema.definition import SIGNED, UNSIGNED

GUIDE_NAMES = {"bool": "BOOLEAN", "uint32": "UNSIGNED_INT32"}
"""A dict from a type's name in definitions to its name in Kafka's protocol guide, where that is not the
name in capitals.
"""


class Fixed(WireType):
    """The wire type of a number or flag of fixed width."""

    def __init__(self, name: str, kind: HeadKind) -> None:
        self.name = name
        self.kind = kind

    @property
    def guide_name(self) -> str:
        return GUIDE_NAMES.get(self.name, self.name.upper())

    @property
    def shape(self) -> tuple[object, ...]:
        return Fixed, self.name

    def decode(self, out: DecodeEmitter, target: str) -> None:
        out.head(target, self.kind)

    def encode(self, out: EncodeEmitter, value: str) -> None:
        out.head(value, self.kind)

    def decode_array(self, out: DecodeEmitter, target: str, sent: str, length: Length) -> None:
        out.array(ArrayPart(target, sent, self.kind, length.bias))

    def encode_array(self, out: EncodeEmitter, items: str, sent: str, length: Length) -> None:
        out.array(ArrayPart(items, sent, self.kind, length.bias))

    def steps(self) -> list[Step]:
        return [Step(StepKind.BYTES, self.kind.size)]

    def problem(self, value: Any) -> str | None:
        try:
            self.kind.write(value)
        except Exception:
            return f": {short_repr(value)} is no {self.name}"
        return None


FIXED_TYPES = {
    name: Fixed(name, kind)
    for name, kind in {
        "bool": fixed_kind("?"), "int8": INT8, "int16": INT16, "int32": INT32, "int64": fixed_kind("q"),
        "uint16": fixed_kind("H"), "uint32": fixed_kind("I"), "float64": fixed_kind("d"),
    }.items()
}  # fmt: skip


class Varint(WireType):
    """The wire type of a whole number with as few bytes as it needs (KIP-625).

    The signed form is zig-zag, short on either side of zero. The unsigned form takes the number's
    two's complement, so it is short from zero up and at its longest for every negative number.
    """

    def __init__(self, bits: int, signed: bool) -> None:
        self.bits = bits
        self.signed = signed
        self.name = f"{'z' if signed else 'w'}{bits}"
        write = runtime.zigzag_writer(bits) if signed else runtime.unsigned_writer(bits)
        self.value_of = runtime.zigzag_value(bits) if signed else runtime.unsigned_value(bits)
        self.read = runtime.varint_reader(bits, self.value_of)
        self.kind = HeadKind(self.name, "B", 1, self.read, write, runtime.ZIGZAG if signed else None)

    @property
    def guide_name(self) -> str:
        return f"{'' if self.signed else 'UNSIGNED_'}VARINT{self.bits}"

    @property
    def shape(self) -> tuple[object, ...]:
        return Varint, self.bits, self.signed

    def decode(self, out: DecodeEmitter, target: str) -> None:
        out.head(target, self.kind)

    def encode(self, out: EncodeEmitter, value: str) -> None:
        out.head(value, self.kind)

    def decode_array(self, out: DecodeEmitter, target: str, sent: str, length: Length) -> None:
        out.flush()
        count = self.checked_count(out, sent, length)
        read = out.shared(f"read_{self.name}s", lambda: runtime.varints_reader(self.read, self.signed))
        out.line(f"{target}, pos = {read}(data, pos, {count})")

    def encode_array(self, out: EncodeEmitter, items: str, sent: str, length: Length) -> None:
        out.array(ArrayPart(items, sent, self.kind, length.bias))

    def encode_compact_array(self, out: EncodeEmitter, value: str) -> bool:
        out.array(ArrayPart(value, "", self.kind, 1))
        return True

    def steps(self) -> list[Step]:
        return [Step(StepKind.VARINT)]

    def problem(self, value: Any) -> str | None:
        half = 1 << (self.bits - 1)
        fits = isinstance(value, int) and -half <= value < half
        return None if fits else f": {short_repr(value)} is no int{self.bits}"


VARINT_TYPES = {
    (f"int{bits}", encoding): Varint(bits, encoding == SIGNED)
    for bits in (16, 32, 64)
    for encoding in (SIGNED, UNSIGNED)
}


class Uuid(WireType):
    """The wire type of a UUID, such as a topic id: 16 bytes."""

    kind = fixed_kind("16s")
    guide_name = "UUID"
    shape = ("uuid",)

    def decode(self, out: DecodeEmitter, target: str) -> None:
        out.head(target, self.kind)

    def encode(self, out: EncodeEmitter, value: str) -> None:
        uuid = out.name("uuid")
        out.before(f"{uuid} = {value}")
        out.before(f"if len({uuid}) != 16:")
        out.before(f"    {out.refuse('an id has 16 bytes')}")
        out.head(uuid, self.kind)

    def steps(self) -> list[Step]:
        return [Step(StepKind.BYTES, self.kind.size)]

    def problem(self, value: Any) -> str | None:
        return (
            None
            if isinstance(value, (bytes, bytearray)) and len(value) == 16
            else f": {short_repr(value)} is no id of 16 bytes"
        )


class LengthPrefixed(WireType):
    """The wire type of values with a length before their bytes. `plain_name` is the protocol guide's name."""

    plain_name: str
    length: Length

    def __init__(self, nullable: bool) -> None:
        self.nullable = self.is_null_allowed = nullable

    @property
    def guide_name(self) -> str:
        return f"{'COMPACT_' * (self.length is COMPACT)}{'NULLABLE_' * self.nullable}{self.plain_name}"

    def steps(self) -> list[Step]:
        return [Step(StepKind.TEXT, 0, self.length)]

    @property
    def shape(self) -> tuple[object, ...]:
        return self.plain_name, self.length is COMPACT, self.nullable


class Text(LengthPrefixed):
    """The wire type of a string in UTF-8."""

    plain_name = "STRING"

    def __init__(self, compact: bool, nullable: bool) -> None:
        super().__init__(nullable)
        self.length = COMPACT if compact else SHORT

    def decode(self, out: DecodeEmitter, target: str) -> None:
        sent, length = out.name("sent"), self.length
        out.head(sent, length.kind)
        with out.block(f"if {sent} > {length.bias}:"):
            out.line(f"end = pos + {sent}{' - 1' if length.bias else ''}")
            out.line(f"{target} = {out.text('pos', 'end')}")
            out.line("pos = end")
        with out.block(f"elif {sent} == {length.bias}:"):
            out.line(f'{target} = ""')
        with out.block("else:"):
            length.expect_null(out, sent, self.nullable)
            if self.nullable:
                out.line(f"{target} = None")

    def encode(self, out: EncodeEmitter, value: str) -> None:
        text, sent = out.name("text"), out.name("sent")
        if self.nullable:
            out.before(f"if {value} is None:")
            out.before(f'    {text} = b""')
            out.before(f"    {sent} = {self.length.null}")
            out.before("else:")
        indent = "    " if self.nullable else ""
        out.before(f"{indent}{text} = {value}.encode()")
        out.before(f"{indent}{sent} = {self.length.of(text)}")
        out.head(sent, self.length.kind)
        out.flush()
        out.line(f"append({text})")

    def problem(self, value: Any) -> str | None:
        if value is None:
            return None if self.nullable else ": null is not allowed"
        if not isinstance(value, str):
            return f": {short_repr(value)} is no string"
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            return f": no UTF-8: {error}"
        return f": {size} bytes are more than 32767" if self.length is SHORT and size > 32767 else None


class Blob(LengthPrefixed):
    """The wire type of bytes whose contents the protocol does not define."""

    plain_name = "BYTES"

    def __init__(self, compact: bool, nullable: bool) -> None:
        super().__init__(nullable)
        self.length = COMPACT if compact else LONG

    @property
    def holds_blobs(self) -> bool:
        return True

    @property
    def length_kind(self) -> HeadKind:
        """The head kind (encoding) of the length before the bytes."""
        return self.length.kind

    def taken(self, out: DecodeEmitter) -> str:
        """Return a Python expression for the value: the bytes from `pos` to `end`."""
        return out.bytes("pos", "end")

    def decode(self, out: DecodeEmitter, target: str) -> None:
        sent, length = out.name("sent"), self.length
        out.head(sent, self.length_kind)
        with out.block(f"if {length.is_present(sent)}:"):
            out.line(f"end = pos + {sent}{' - 1' if length.bias else ''}")
            out.line(f"{target} = {self.taken(out)}")
            out.line("pos = end")
        with out.block("else:"):
            length.expect_null(out, sent, self.nullable)
            if self.nullable:
                out.line(f"{target} = None")

    def encode(self, out: EncodeEmitter, value: str) -> None:
        blob, sent = out.name("blob"), out.name("sent")
        out.before(f"{blob} = {value}")
        self.measure(out, blob, sent)
        out.head(sent, self.length_kind)
        out.flush()
        self.append(out, blob)

    def measure(self, out: EncodeEmitter, blob: str, sent: str) -> None:
        if self.nullable:
            out.before(f"if {blob} is None:")
            out.before(f'    {blob} = b""')
            out.before(f"    {sent} = {self.length.null}")
            out.before("else:")
        out.before(f"{'    ' if self.nullable else ''}{sent} = {self.length.of(blob)}")

    def append(self, out: EncodeEmitter, blob: str) -> None:
        out.line(f"append({blob})")
        out.line("large = True")

    def problem(self, value: Any) -> str | None:
        if value is None:
            return None if self.nullable else ": null is not allowed"
        return (
            None
            if isinstance(value, (bytes, bytearray, memoryview))
            else f": {short_repr(value)} is no bytes"
        )


class RecordSet(Blob):
    """The wire type of record batches: decoded as a view; any object with a length can be encoded."""

    plain_name = "RECORDS"

    @property
    def holds_records(self) -> bool:
        return True

    @property
    def length_kind(self) -> HeadKind:
        return RECORDS_BYTES if self.length is COMPACT else self.length.kind

    def taken(self, out: DecodeEmitter) -> str:
        return out.uncopied("pos", "end")

    def measure(self, out: EncodeEmitter, blob: str, sent: str) -> None:
        plus = " + 1" if self.length.bias else ""
        out.before(f"if type({blob}) is bytes:")
        out.before(f"    {sent} = len({blob}){plus}")
        if self.nullable:
            out.before(f"elif {blob} is None:")
            out.before(f"    {sent} = {self.length.null}")
        out.before("else:")
        out.before(f"    {sent} = records_size({blob}){plus}")

    def append(self, out: EncodeEmitter, blob: str) -> None:
        out.line(f"if type({blob}) is bytes and len({blob}) <= {runtime.CHUNK_BYTES_MIN}:")
        out.line(f"    append({blob})")
        out.line("else:")
        out.line(f"    add_records(parts, {blob})")
        out.line("    large = True")

    def problem(self, value: Any) -> str | None:
        if value is None:
            return None if self.nullable else ": null is not allowed"
        if isinstance(value, str) or not hasattr(value, "__len__"):
            return f": {short_repr(value)} is no records: something with a length was expected"
        return None


class Array(WireType):
    """The wire type of an array of elements of one type."""

    is_array = True

    def __init__(self, element: WireType, compact: bool, nullable: bool) -> None:
        self.element = element
        self.length = COMPACT if compact else LONG
        self.nullable = nullable
        self.is_null_allowed = nullable

    @property
    def guide_name(self) -> str:
        return f"{'NULLABLE ' * self.nullable}[{self.element.guide_name}]"

    @property
    def shape(self) -> tuple[object, ...]:
        return Array, self.length is COMPACT, self.nullable, self.element.shape

    @property
    def element_name(self) -> str:
        return self.element.guide_name

    @property
    def struct(self) -> StructLayout | None:
        return self.element.struct

    @property
    def holds_records(self) -> bool:
        return self.element.holds_records

    @property
    def holds_blobs(self) -> bool:
        return self.element.holds_blobs

    def decode(self, out: DecodeEmitter, target: str) -> None:
        sent = out.name("sent")
        out.head(sent, self.length.kind)
        if not self.nullable:
            self.element.decode_array(out, target, sent, self.length)
            return
        with out.block(f"if {self.length.is_present(sent)}:"):
            self.element.decode_array(out, target, sent, self.length)
        with out.block("else:"):
            self.length.expect_null(out, sent, nullable=True)
            out.line(f"{target} = None")

    def encode(self, out: EncodeEmitter, value: str) -> None:
        if self.length.bias and not self.nullable and self.element.encode_compact_array(out, value):
            return
        items, sent = out.name("items"), out.name("sent")
        out.before(f"{items} = {value}")
        if self.nullable:
            out.before(f"if {items} is None:")
            out.before(f"    {items}, {sent} = (), {self.length.null}")
            out.before("else:")
        out.before(f"{'    ' if self.nullable else ''}{sent} = {self.length.of(items)}")
        out.head(sent, self.length.kind)
        self.element.encode_array(out, items, sent, self.length)

    def steps(self) -> list[Step]:
        inner = self.element.steps()
        if not inner or (len(inner) == 1 and inner[0].kind is StepKind.BYTES):
            return [Step(StepKind.FIXED_ARRAY, inner[0].size if inner else 0, self.length)]
        return [Step(StepKind.ARRAY, 0, self.length, inner)]

    def problem(self, value: Any) -> str | None:
        if value is None:
            return None if self.nullable else ": null is not allowed"
        if not isinstance(value, (list, tuple)):
            return f": {short_repr(value)} is no list"
        for index, item in enumerate(value):
            problem = self.element.problem(item)
            if problem:
                return f"[{index}]{problem}"
        return None


def _always(wire: WireType) -> Callable[[bool, bool], WireType]:
    """Return a function that always returns the wire type `wire`, compact or not, nullable or not."""
    return lambda compact, nullable: wire


WIRE_TYPES: dict[str, Callable[[bool, bool], WireType]] = {
    **{name: _always(wire) for name, wire in FIXED_TYPES.items()},
    "uuid": _always(Uuid()),
    "string": Text,
    "bytes": Blob,
    "records": RecordSet,
}
"""A dict from each scalar type of definitions to a function of (compact, nullable) that returns its wire
type.
"""
