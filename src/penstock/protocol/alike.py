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
from penstock.protocol.wire import Array, Fixed, Length, Uuid, Varint

if TYPE_CHECKING:
    from penstock.protocol.runtime import Data
    from penstock.protocol.structs import PlacedField, StructLayout

STRETCH_MIN = 8
"""Elements that must be left for a look at columns to pay."""

SHAPES_MAX = 128
"""Functions compiled for one array. Each costs a third of a millisecond and a few kilobytes."""

VALUES_MAX = 64
"""Values in one element, beyond which the ordinary code is good enough."""

Read = Callable[["Data", int, int], list[Any]]


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
    """Reads stretches of elements that have the shape of the last one read."""

    def __init__(self, layout: StructLayout, view: bool) -> None:
        self._layout = layout
        self._view = view
        self._shapes: dict[Any, tuple[Read | None, int]] = {}
        arrays = [field.spec.attribute for field in layout.fields if isinstance(field.wire, Array)]
        self._arrays = attrgetter(*arrays) if arrays else None
        self._is_one = len(arrays) == 1

    def __call__(self, cls: type, items: list[Any], data: Data, position: int, count: int) -> int:
        """Read elements as long as they are like the last of `items`, at most up to `count` in all.

        Returns the position after them.
        """
        if self._arrays is None:
            shape: tuple[int, ...] = ()
        elif self._is_one:
            shape = (len(self._arrays(items[-1])),)
        else:
            shape = tuple(map(len, self._arrays(items[-1])))
        known = self._shapes.get(shape)
        if known is None:
            if len(self._shapes) >= SHAPES_MAX:
                return position
            known = self._shapes[shape] = self._compile(cls, shape)
        read, size = known
        if read is None:
            return position
        made = read(data, position, count - len(items))
        items += made
        return position + size * len(made)

    def _compile(self, cls: type, shape: tuple[int, ...]) -> tuple[Read | None, int]:
        if sum(shape) + len(self._layout.fields) > VALUES_MAX:
            return None, 0
        maker = _ShapeSource(self._layout, shape)
        source = maker.source(self._view)
        namespace = {
            "cls": cls,
            "new": object.__new__,
            "repeat": repeat,
            "rows": Struct(maker.format).iter_unpack,
            **maker.constants,
        }
        exec(compile(source, f"<penstock {cls.__name__} alike {shape}>", "exec"), namespace)
        return namespace["read"], maker.size


class _ShapeSource:
    """Source of a function that reads elements of one shape."""

    def __init__(self, layout: StructLayout, shape: tuple[int, ...]) -> None:
        self.format = ">"
        self.size = 0
        self.constants: dict[str, Any] = {}
        self._columns: list[tuple[int, bytes]] = []
        self._row: list[str] = []
        self._body: list[str] = []
        lengths = iter(shape)
        for field in layout.fields:
            if isinstance(field.wire, Array):
                self._add_array(field, field.wire, next(lengths))
            else:
                self._add_value(field)
        if layout.flexible:
            self._expect(b"\0")
        for spec in [*layout.absent, *(field.spec for _, field in layout.tagged)]:
            self._body.append(f"item.{spec.attribute} = {'[]' if spec.default == () else repr(spec.default)}")

    def _expect(self, sent: bytes) -> None:
        """Bytes that stand in every element of this shape."""
        self._columns += [(self.size + place, sent[place : place + 1]) for place in range(len(sent))]
        self.format += f"{len(sent)}x"
        self.size += len(sent)

    def _add_value(self, field: PlacedField) -> None:
        wire, target = field.wire, f"item.{field.spec.attribute}"
        assert isinstance(wire, (Fixed, Uuid, Varint))
        self._take(wire, 1)
        if isinstance(wire, Varint) and wire.signed:
            name = f"value{self.size}"
            self._row.append(name)
            self._body.append(f"{target} = zigzag[{name}]")
        else:
            self._row.append(target)

    def _add_array(self, field: PlacedField, wire: Array, length: int) -> None:
        self._expect(_sent(wire.length, length))
        names = [f"value{self.size}_{number}" for number in range(length)]
        element = wire.element
        assert isinstance(element, (Fixed, Varint))
        self._take(element, length)
        self._row += names
        if isinstance(element, Varint) and element.signed:
            names = [f"zigzag[{name}]" for name in names]
        self._body.append(f"item.{field.spec.attribute} = [{', '.join(names)}]")

    def _take(self, wire: Fixed | Uuid | Varint, count: int) -> None:
        if isinstance(wire, Varint):
            self._columns += [(self.size + place, SMALL) for place in range(count)]
            if wire.signed and wire.kind.small:
                self.constants["zigzag"] = wire.kind.small
        self.format += wire.kind.code * count
        self.size += wire.kind.size * count

    def source(self, view: bool) -> str:
        lines = ["def read(data, pos, count):", f"    count = min(count, (len(data) - pos) // {self.size})"]
        for number, (offset, allowed) in enumerate(self._columns):
            self.constants[f"allowed{number}"] = allowed
            column = f"data[pos + {offset} : pos + count * {self.size} : {self.size}]"
            lines.append(f"    column = {f'bytes({column})' if view else column}")
            lines.append(f"    count = len(column) - len(column.lstrip(allowed{number}))")
        row = ", ".join(self._row)
        lines += [
            "    made = list(map(new, repeat(cls, count)))",
            f"    for item, ({row},) in zip(made, rows(data[pos : pos + count * {self.size}])):",
            "        item.unknown_tags = None",
            *(f"        {line}" for line in self._body),
            "    return made",
        ]
        return "\n".join(lines)


SMALL = bytes(range(128))
"""The bytes that are varints by themselves."""


def _sent(length: Length, count: int) -> bytes:
    return length.kind.write(count + length.bias)
