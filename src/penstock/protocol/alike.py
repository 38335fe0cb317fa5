"""Arrays of structs that look alike: the elements after the first are read by one iterator.

The partitions of a topic mostly have as many replicas as their neighbours, so their entries are of
the same size and the same numbers stand at the same places. Such a stretch is found by looking at
columns: the bytes at one place in every entry are a slice with a step, and how many of them are as
expected is a question that `bytes` answers at once. Then `struct.iter_unpack` reads the stretch.

A function is compiled for each shape that is met, up to a limit. What does not fit is left to the
ordinary code, which reads the first element of every stretch anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

from penstock.protocol.definition import NewStruct
from penstock.protocol.runtime import ZIGZAG, varint_bytes
from penstock.protocol.wire import Array, Fixed, Uuid, Varint, WireType

if TYPE_CHECKING:
    from penstock.protocol.runtime import Data
    from penstock.protocol.structs import PlacedField, StructLayout

STRETCH_MIN = 4
"""Elements that must be left for a look at columns to pay."""

SHAPES_MAX = 128
"""Functions compiled for one array. Each costs a third of a millisecond and a few kilobytes."""

VALUES_MAX = 64
"""Values in one element, beyond which the ordinary code is good enough."""

Read = Callable[["Data", int, int], list[Any]]
Shape = tuple[tuple[int, ...], tuple[int, ...]]


def can_be_alike(layout: StructLayout) -> bool:
    """Whether elements of this layout have a size that depends on the lengths of arrays alone."""
    plain = all(_is_plain(field) for field in layout.fields) and bool(layout.fields)
    unsaid = [*layout.absent, *(field.spec for _, field in layout.tagged)]
    return plain and all(spec.default is not NewStruct for spec in unsaid)


def _is_plain(field: PlacedField) -> bool:
    wire = field.wire
    if isinstance(wire, Array):
        return not wire.nullable and isinstance(wire.element, (Fixed, Varint))
    return isinstance(wire, (Fixed, Uuid, Varint))


class AlikeReader:
    """Reads stretches of elements that have the shape of the last one read.

    A shape says for each array how many elements it has, and for each varint how many bytes.
    """

    def __init__(self, layout: StructLayout, view: bool) -> None:
        self._layout = layout
        self._view = view
        self._shapes: dict[Any, tuple[Read | None, int]] = {}
        self._first: tuple[Read | None, int] = (None, 0)
        self._is_new = True
        arrays = [field.spec.attribute for field in layout.fields if isinstance(field.wire, Array)]
        self._arrays = attrgetter(*arrays) if arrays else None
        self._is_one = len(arrays) == 1
        self._packed = [
            (field.spec.attribute, packed) for field in layout.fields if (packed := _varint(field))
        ]

    def __call__(self, cls: type, items: list[Any], data: Data, position: int, count: int) -> int:
        """Read elements as long as they are like the last of `items`, at most up to `count` in all.

        Returns the position after them.
        """
        shape = self._shape_of(items[-1])
        known = self._shapes.get(shape)
        if known is None:
            if len(self._shapes) >= SHAPES_MAX:
                return position
            known = self._shapes[shape] = self._compile(cls, shape)
        read, size = known
        if read is None:
            return position
        made = read(data, position, count - len(items))
        if made:
            if self._is_new:
                self._first, self._is_new = known, False
            items += made
        return position + size * len(made)

    def again(self, items: list[Any], data: Data, position: int, count: int) -> int:
        """Read first elements that are like those that the array before began with.

        Returns the position after them.
        """
        read, size = self._first
        self._is_new = True
        if read is None:
            return position
        items += read(data, position, count)
        self._is_new = not items
        return position + size * len(items)

    def _shape_of(self, item: Any) -> Shape:
        if self._arrays is None:
            counts: tuple[int, ...] = ()
        elif self._is_one:
            counts = (len(self._arrays(item)),)
        else:
            counts = tuple(map(len, self._arrays(item)))
        if not self._packed or sum(counts) > VALUES_MAX:
            return counts, ()
        sizes: list[int] = []
        for attribute, packed in self._packed:
            value = getattr(item, attribute)
            known = varint_bytes(packed.name, packed.kind.write)
            if isinstance(value, list):
                sizes += [len(known[each]) for each in value]
            else:
                sizes.append(len(known[value]))
        return counts, tuple(sizes)

    def _compile(self, cls: type, shape: Shape) -> tuple[Read | None, int]:
        counts, sizes = shape
        if sum(counts) + len(self._layout.fields) > VALUES_MAX:
            return None, 0
        maker = _ShapeSource(self._layout, counts, sizes)
        source = maker.source(self._view)
        namespace = {
            "cls": cls,
            "new": object.__new__,
            "repeat": repeat,
            "rows": Struct(maker.format).iter_unpack,
            "zigzag": ZIGZAG,
            "from_zigzag": FROM_ZIGZAG,
            "plain_byte": PLAIN_BYTE,
            **maker.constants,
        }
        exec(compile(source, f"<penstock {cls.__name__} alike {counts} {sizes}>", "exec"), namespace)
        return namespace["read"], maker.size


def _varint(field: PlacedField) -> Varint | None:
    wire = field.wire.element if isinstance(field.wire, Array) else field.wire
    return wire if isinstance(wire, Varint) else None


class _ShapeSource:
    """Source of a function that reads elements of one shape."""

    def __init__(self, layout: StructLayout, counts: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.format = ">"
        self.size = 0
        self.constants: dict[str, Any] = {}
        self._columns: list[tuple[int, bytes]] = []
        self._row: list[str] = []
        self._body: list[str] = []
        self._sizes = iter(sizes)
        packed = [_varint(field) for field in layout.fields]
        self._translated = all(each and each.signed for each in packed)
        self._is_ascii = all(packed) and max(sizes, default=1) == 1
        lengths = iter(counts)
        for field in layout.fields:
            wire, target = field.wire, f"item.{field.spec.attribute}"
            if isinstance(wire, Array):
                length = next(lengths)
                self._expect(wire.length.kind.write(length + wire.length.bias))
                values = [self._value(wire.element) for _ in range(length)]
                self._body.append(f"{target} = [{', '.join(values)}]")
            elif isinstance(wire, Varint):
                self._body.append(f"{target} = {self._value(wire)}")
            else:
                self._take(wire, target)
        if layout.flexible:
            self._expect(b"\0")
        for spec in [*layout.absent, *(field.spec for _, field in layout.tagged)]:
            default = "[]" if spec.default == () else repr(spec.default)
            self._body.append(f"item.{spec.attribute} = {default}")

    def _expect(self, sent: bytes) -> None:
        """Bytes that stand in every element of this shape."""
        self._columns += [(self.size + place, sent[place : place + 1]) for place in range(len(sent))]
        self.format += f"{len(sent)}x"
        self.size += len(sent)

    def _take(self, wire: WireType, target: str) -> None:
        assert isinstance(wire, (Fixed, Uuid))
        self._row.append(target)
        self.format += wire.kind.code
        self.size += wire.kind.size

    def _value(self, wire: WireType) -> str:
        """Take a value in; return an expression for it."""
        name = f"value{self.size}"
        if not isinstance(wire, Varint):
            self._take(wire, name)
            return name
        size = next(self._sizes)
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
            table = f"pairs_of_{wire.name}"
            self.constants.setdefault(table, BytePairs(wire, self._translated))
            return f"{table}[{name}]"
        self._take_varint(1, "b" if self._translated else "B")
        return f"zigzag[{name}]" if wire.signed and not self._translated else name

    def _take_varint(self, size: int, format: str) -> None:
        self._columns += [(self.size + place, LARGE) for place in range(size - 1)]
        if not self._is_ascii:
            self._columns.append((self.size + size - 1, SMALL))
        self.format += format
        self.size += size

    def source(self, view: bool) -> str:
        lines = ["def read(data, pos, count):", f"    count = min(count, (len(data) - pos) // {self.size})"]
        for number, (offset, allowed) in enumerate(self._columns):
            self.constants[f"allowed{number}"] = allowed
            column = f"data[pos + {offset} : pos + count * {self.size} : {self.size}]"
            lines.append(f"    column = {f'bytes({column})' if view else column}")
            lines.append(f"    count = len(column) - len(column.lstrip(allowed{number}))")
        stretch = f"data[pos : pos + count * {self.size}]"
        if self._is_ascii:
            # One look at all bytes does for the columns of numbers: each is below 128.
            self.constants["small"] = SMALL
            lines += [
                f"    whole = {f'bytes({stretch})' if view else stretch}",
                "    if not whole.isascii():",
                f"        count = (len(whole) - len(whole.lstrip(small))) // {self.size}",
            ]
        if self._translated:
            stretch = f"{f'bytes({stretch})' if view else stretch}.translate(from_zigzag)"
        row = f"({', '.join(self._row)},)"
        head = f"for item, {row} in zip(made, rows({stretch})):" if self._row else "for item in made:"
        lines += [
            "    made = list(map(new, repeat(cls, count)))",
            f"    {head}",
            "        item.unknown_tags = None",
            *(f"        {line}" for line in self._body),
            "    return made",
        ]
        return "\n".join(lines)


class BytePairs(dict[int, int]):
    """What varints of two bytes stand for, those met so far; keys are the bytes as one big-endian number."""

    def __init__(self, wire: Varint, translated: bool) -> None:
        super().__init__()
        self._wire = wire
        self._translated = translated

    def __missing__(self, pair: int) -> int:
        last = PLAIN_BYTE[pair & 255] if self._translated else pair & 255
        value = self[pair] = self._wire.value_of(pair >> 8 & 127 | last << 7)
        return value


FROM_ZIGZAG = bytes([*(number & 255 for number in ZIGZAG), *range(128, 256)])
"""Zig-zag of one byte to signed bytes. What begins a longer number stays as it is."""

PLAIN_BYTE = bytes(2 * byte if byte < 64 else (511 - 2 * byte) & 255 for byte in range(256))
"""The way back, for the last byte of a longer number."""

SMALL, LARGE = bytes(range(128)), bytes(range(128, 256))
"""The bytes that end a varint, and those that are followed by another."""
