"""Arrays of structs that look alike: the elements after the first are read by one iterator.

The partitions of a topic mostly have as many replicas as their neighbours, so their entries are of
the same size and the same numbers stand at the same places. Such a stretch is found by looking at
columns: the bytes at one place in every entry are a slice with a step, and how many of them are as
expected is a question that `bytes` answers at once. Then `struct.iter_unpack` reads the stretch. The
array after it is expected to have stretches as long (its course), and so on until one differs.

A function is compiled for each shape that is met twice, up to a limit. What does not fit is left to the
ordinary code, which reads the first element of every stretch anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import repeat
from struct import Struct
from typing import TYPE_CHECKING, Any

from penstock.protocol.definition import NewStruct
from penstock.protocol.runtime import ZIGZAG, varint_bytes
from penstock.protocol.wire import Array, Fixed, Text, Uuid, Varint, WireType

if TYPE_CHECKING:
    from penstock.protocol.runtime import Data
    from penstock.protocol.structs import PlacedField, StructLayout

STRETCH_MIN = 4
"""Elements that must be left for a look at columns to pay."""

SHAPES_MAX = 128
"""Functions compiled for one array. Each costs a third of a millisecond and a few kilobytes."""

MASKED_MAX = 128
"""Stretches up to this many elements are compared whole, as one large number."""

LOOK_AHEAD = 64
"""Elements that are compared at first; four times as many when all of them are alike, and so on."""

COLUMNS_MIN = 32
"""Stretches of one-byte numbers that are at least as long are read column by column."""

COURSE_MAX = 8
"""Stretches of an array that are expected in the next one."""

VALUES_MAX = 64
"""Values in one array, beyond which the ordinary code is good enough."""

SHAPE_BYTES_MAX = 512
"""Values and bytes of text in one element, likewise."""

Read = Callable[["Data", int, int], list[Any]]
Shape = tuple[int, ...]


def _nothing(data: Data, position: int, count: int) -> list[Any]:
    return []


SEEN_ONCE: tuple[Read, int] = (_nothing, 0)
"""Stands for a shape that was met, and is worth compiling when it comes again."""


def can_be_alike(layout: StructLayout) -> bool:
    """Whether elements of this layout have a size that depends on the lengths of arrays and texts alone."""
    plain = all(_is_plain(field) for field in layout.fields) and bool(layout.fields)
    unsaid = [*layout.absent, *(field.spec for _, field in layout.tagged)]
    return plain and all(spec.default is not NewStruct or spec.is_made_late for spec in unsaid)


def _is_plain(field: PlacedField) -> bool:
    wire = field.wire
    if isinstance(wire, Array):
        return not wire.nullable and isinstance(wire.element, (Fixed, Varint))
    return isinstance(wire, (Fixed, Text, Uuid, Varint))


class AlikeReader:
    """Reads stretches of elements that have the shape of the last one read.

    A shape says for each array how many elements it has, and for each text and varint how many bytes.
    """

    def __init__(self, layout: StructLayout, view: bool) -> None:
        self._layout = layout
        self._view = view
        self._shapes: dict[Shape, tuple[Read, int]] = {}
        self._course: list[tuple[Read, int, int]] = []
        self._sized = [
            (field.spec.attribute, field.wire)
            for field in layout.fields
            if isinstance(field.wire, (Array, Text, Varint))
        ]

    def __call__(self, cls: type, items: list[Any], data: Data, position: int, count: int) -> int:
        """Read elements as long as they are like the last of `items`, at most up to `count` in all.

        Returns the position after them.
        """
        shape = self._shape_of(items[-1])
        if shape is None:
            return position
        known = self._shapes.get(shape)
        if known is None:
            if len(self._shapes) < SHAPES_MAX:
                self._shapes[shape] = SEEN_ONCE
            return position
        if known is SEEN_ONCE:
            known = self._shapes[shape] = self._compile(cls, shape)
        read, size = known
        before, most = len(items), LOOK_AHEAD
        while len(items) < count:
            asked = min(count - len(items), most)
            made = read(data, position, asked)
            items += made
            position += size * len(made)
            if len(made) < asked:
                break
            # Looking far ahead costs time even where the stretch turns out to be short.
            most *= 4
        if len(items) > before:
            self._note(read, size, 1 + len(items) - before)
        return position

    def again(self, items: list[Any], data: Data, position: int, count: int) -> int:
        """Read first elements that are like those of the array before, one stretch after the other.

        Returns the position after them.
        """
        left = count
        for read, size, length in self._course:
            asked = length if length < left else left
            made = read(data, position, asked)
            items += made
            found = len(made)
            position += size * found
            left -= found
            if found < length:
                if found < asked:
                    self._shorten(count - left)
                break
        else:
            if left and self._course:
                made = read(data, position, left)
                items += made
                position += size * len(made)
                self._note(read, size, len(made))
        return position

    def _shorten(self, reached: int) -> None:
        """Forget what was expected beyond so many elements: what follows them is learnt again."""
        course = []
        for read, size, length in self._course:
            if reached > 0:
                course.append((read, size, min(length, reached)))
            reached -= length
        self._course = course

    def _note(self, read: Read, size: int, length: int) -> None:
        """Expect a stretch of this length in the next array; what follows its like makes it longer."""
        course = self._course
        if course and course[-1][0] is read:
            course[-1] = (read, size, course[-1][2] + length)
        elif len(course) < COURSE_MAX:
            course.append((read, size, length))

    def _shape_of(self, item: Any) -> Shape | None:
        shape: list[int] = []
        for attribute, wire in self._sized:
            value = getattr(item, attribute)
            if isinstance(wire, Text):
                shape.append(-1 if value is None else len(value) if value.isascii() else len(value.encode()))
            elif isinstance(wire, Varint):
                shape.append(_bytes_of(wire, value))
            else:
                shape.append(len(value))
                if len(value) > VALUES_MAX:
                    return None
                if isinstance(wire.element, Varint):
                    shape += [_bytes_of(wire.element, each) for each in value]
        return tuple(shape) if sum(shape) <= SHAPE_BYTES_MAX else None

    def _compile(self, cls: type, shape: Shape) -> tuple[Read, int]:
        maker = _ShapeSource(self._layout, shape)
        source = maker.source(self._view)
        namespace = {
            "cls": cls,
            "new": object.__new__,
            "repeat": repeat,
            "rows": Struct(maker.format).iter_unpack,
            "zigzag": ZIGZAG,
            "from_bytes": int.from_bytes,
            "from_zigzag": FROM_ZIGZAG,
            "plain_byte": PLAIN_BYTE,
            **maker.constants,
        }
        exec(compile(source, f"<penstock {cls.__name__} alike {shape}>", "exec"), namespace)
        return namespace["read"], maker.size


def _bytes_of(wire: Varint, value: int) -> int:
    return len(varint_bytes(wire.name, wire.kind.write)[value])


def _varint(field: PlacedField) -> Varint | None:
    wire = field.wire.element if isinstance(field.wire, Array) else field.wire
    return wire if isinstance(wire, Varint) else None


class _ShapeSource:
    """Source of a function that reads elements of one shape."""

    def __init__(self, layout: StructLayout, shape: Shape) -> None:
        self.format = ">"
        self.size = 0
        self.constants: dict[str, Any] = {}
        self._columns: list[tuple[int, bytes]] = []
        self._row: list[str] = []
        self._body: list[str] = []
        self._shape = iter(shape)
        self._translated = all((packed := _varint(each)) and packed.signed for each in layout.fields)
        for field in layout.fields:
            wire, target = field.wire, f"item.{field.spec.attribute}"
            if isinstance(wire, Array):
                length = next(self._shape)
                self._expect(wire.length.kind.write(length + wire.length.bias))
                values = [self._value(wire.element) for _ in range(length)]
                self._body.append(f"{target} = [{', '.join(values)}]")
            elif isinstance(wire, Text):
                self._body.append(f"{target} = {self._text(wire, next(self._shape))}")
            else:
                value = self._value(wire, target)
                if value != target:
                    self._body.append(f"{target} = {value}")
        if layout.flexible:
            self._expect(b"\0")
        for spec in [*layout.absent, *(field.spec for _, field in layout.tagged)]:
            default = "[]" if spec.default == () else "None" if spec.is_made_late else repr(spec.default)
            self._body.append(f"item.{spec.slot} = {default}")

    def _expect(self, sent: bytes) -> None:
        """Bytes that stand in every element of this shape."""
        self._columns += [(self.size + place, sent[place : place + 1]) for place in range(len(sent))]
        self.format += f"{len(sent)}x"
        self.size += len(sent)

    def _text(self, wire: Text, size: int) -> str:
        """Take a text in whose length is known; return an expression for it."""
        self._expect(wire.length.kind.write(size + wire.length.bias))
        if size <= 0:
            return "None" if size < 0 else '""'
        name = f"text{self.size}"
        self._row.append(name)
        self.format += f"{size}s"
        self.size += size
        return f"{name}.decode()"

    def _take(self, wire: WireType, target: str) -> None:
        assert isinstance(wire, (Fixed, Uuid))
        self._row.append(target)
        self.format += wire.kind.code
        self.size += wire.kind.size

    def _value(self, wire: WireType, target: str = "") -> str:
        """Take a value in; return an expression for it: `target` itself where rows are unpacked into it."""
        name = target or f"value{self.size}"
        if not isinstance(wire, Varint):
            self._take(wire, name)
            return name
        size = next(self._shape)
        if size == 1 and (self._translated or not wire.signed):
            self._row.append(name)
            self._take_varint(1, "b" if self._translated else "B")
            return name
        name = f"value{self.size}"
        if size <= 2:
            return self._short_value(wire, name, size)
        names = [f"{name}_{place}" for place in range(size)]
        self._row += names
        self._take_varint(size, "B" * size)
        # A table may have turned the bytes of small numbers into signed ones.
        back = f"plain_byte[{names[-1]}]" if self._translated else names[-1]
        groups = [f"({each} & 127) << {7 * place}" for place, each in enumerate([*names[:-1], back])]
        self.constants[f"value_of_{wire.name}"] = wire.value_of
        return f"value_of_{wire.name}({' | '.join(groups)})"

    def _short_value(self, wire: Varint, name: str, size: int) -> str:
        """A varint of one byte, or of two that are looked up together."""
        self._row.append(name)
        if size == 2:
            self._take_varint(2, "H")
            table = "signed_pairs" if wire.signed else "pairs"
            self.constants[table] = byte_pairs(wire.signed, self._translated)
            return f"{table}[{name}]"
        self._take_varint(1, "B")
        return f"zigzag[{name}]"

    def _take_varint(self, size: int, format: str) -> None:
        self._columns += [(self.size + place, LARGE) for place in range(size - 1)]
        self._columns.append((self.size + size - 1, SMALL))
        self.format += format
        self.size += size

    def _checks(self) -> list[str]:
        """The lines that shorten `count` to the elements that have this shape."""
        if not self._columns:
            return []
        bits, expected = bytearray(self.size), bytearray(self.size)
        for offset, allowed in self._columns:
            bits[offset] = 128 if len(allowed) > 1 else 255
            expected[offset] = allowed[0] & bits[offset]
        self.constants |= {"bits": Repeated(bits), "expected": Repeated(expected)}
        lines = [f"    if count > {MASKED_MAX} or from_bytes(stretch) & bits[count] != expected[count]:"]
        for number, (offset, allowed) in enumerate(self._columns):
            self.constants[f"allowed{number}"] = allowed
            lines.append(f"        column = stretch[{offset} : count * {self.size} : {self.size}]")
            lines.append(f"        count = len(column) - len(column.lstrip(allowed{number}))")
        return [*lines, f"        stretch = stretch[: count * {self.size}]"]

    def source(self, view: bool) -> str:
        stretch = f"data[pos : pos + count * {self.size}]"
        translated = ".translate(from_zigzag)" if self._translated else ""
        rows = f", ({', '.join(self._row)},) in zip(made, rows(plain))" if self._row else " in made"
        return "\n".join(
            [
                "def read(data, pos, count):",
                f"    stretch = {f'bytes({stretch})' if view else stretch}",
                f"    if len(stretch) < count * {self.size}:",
                f"        count = len(stretch) // {self.size}",
                f"        stretch = stretch[: count * {self.size}]",
                *self._checks(),
                "    made = [*map(new, repeat(cls, count))]",
                f"    plain = stretch{translated}",
                *self._by_columns(),
                *self._fill(f"for item{rows}:", "    "),
                "    return made",
            ]
        )

    def _by_columns(self) -> list[str]:
        """The lines that read a long stretch of one-byte numbers: columns of bytes are faster than rows."""
        offsets = [offset for offset, allowed in self._columns if allowed is SMALL]
        if not offsets or len(offsets) < len(self._row) or any(each is LARGE for _, each in self._columns):
            return []
        columns = ", ".join([f"plain[{offset}::{self.size}]" for offset in offsets])
        # Bytes have no sign.
        fits = ' and b"".join(columns).isascii()' if self._translated else ""
        return [
            f"    columns = [{columns}] if count >= {COLUMNS_MIN} else []",
            f"    if columns{fits}:",
            *self._fill(f"for item, {', '.join(self._row)} in zip(made, *columns):", "        "),
            "        return made",
        ]

    def _fill(self, each: str, indent: str) -> list[str]:
        return [indent + each, *(f"{indent}    {line}" for line in ["item.unknown_tags = None", *self._body])]


class Repeated(dict[int, int]):
    """The bytes of one element, as often as asked for, as one number."""

    def __init__(self, element: bytes | bytearray) -> None:
        super().__init__()
        self._element = bytes(element)

    def __missing__(self, count: int) -> int:
        number = self[count] = int.from_bytes(self._element * count)
        return number


@cache
def byte_pairs(signed: bool, translated: bool) -> list[int]:
    """What varints of two bytes stand for; the index is both bytes as one big-endian number."""
    table = [0] * 65536
    for first in LARGE:
        for last in SMALL:
            number = first & 127 | last << 7
            place = first << 8 | (FROM_ZIGZAG[last] if translated else last)
            table[place] = (number >> 1) ^ -(number & 1) if signed else number
    return table


FROM_ZIGZAG = bytes([*(number & 255 for number in ZIGZAG), *range(128, 256)])
"""Zig-zag of one byte to signed bytes. What begins a longer number stays as it is."""

PLAIN_BYTE = bytes(2 * byte if byte < 64 else (511 - 2 * byte) & 255 for byte in range(256))
"""The way back, for the last byte of a longer number."""

SMALL, LARGE = bytes(range(128)), bytes(range(128, 256))
"""The bytes that end a varint, and those that are followed by another."""
