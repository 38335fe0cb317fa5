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
from penstock.protocol.runtime import ZIGZAG
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
        self._latest: tuple[Read | None, int] = (None, 0)
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
            self._latest = known
            items += made
        return position + size * len(made)

    def again(self, items: list[Any], data: Data, position: int, count: int) -> int:
        """Read first elements that are like those of the latest stretch, perhaps of another array.

        Returns the position after them.
        """
        read, size = self._latest
        if read is None:
            return position
        items += read(data, position, count)
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
            values = value if isinstance(value, list) else (value,)
            sizes += [len(packed.kind.write(each)) for each in values]
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
        names = [f"{name}_{place}" for place in range(size)]
        self._row += names
        self._columns += [(self.size + place, LARGE) for place in range(size - 1)]
        self._columns.append((self.size + size - 1, SMALL))
        self.format += "B" * size
        self.size += size
        if size == 1:
            return f"zigzag[{names[0]}]" if wire.signed else names[0]
        groups = [f"({each} & 127) << {7 * place}" for place, each in enumerate(names)]
        return f"{self._converter(wire)}({' | '.join(groups)})"

    def _converter(self, wire: Varint) -> str:
        self.constants[f"value_of_{wire.name}"] = wire.value_of
        return f"value_of_{wire.name}"

    def source(self, view: bool) -> str:
        lines = ["def read(data, pos, count):", f"    count = min(count, (len(data) - pos) // {self.size})"]
        for number, (offset, allowed) in enumerate(self._columns):
            self.constants[f"allowed{number}"] = allowed
            column = f"data[pos + {offset} : pos + count * {self.size} : {self.size}]"
            lines.append(f"    column = {f'bytes({column})' if view else column}")
            lines.append(f"    count = len(column) - len(column.lstrip(allowed{number}))")
        stretch = f"data[pos : pos + count * {self.size}]"
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


SMALL, LARGE = bytes(range(128)), bytes(range(128, 256))
"""The bytes that end a varint, and those that are followed by another."""
