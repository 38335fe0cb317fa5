"""Messages with records that look like the one before are read without a loop or a branch.

A producer mostly sends to the same topic and partition again, and so the lengths and counts in its
requests stand still: only numbers and records change. `Learner` stands in for the decoder of a message
that holds records. When what it reads has the same outline twice, it writes straight code for that
outline: one unpacking up to the records, one after them, a comparison of the lengths and counts, and
the objects. What does not fit goes to the ordinary decoder from its beginning, which also finds the words
for whatever is wrong with it.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import DecodeError
from penstock.protocol.definition import FieldSpec, NewStruct, StructSpec
from penstock.protocol.runtime import read_uvarint
from penstock.protocol.structs import NullableStructure, StructLayout, Structure
from penstock.protocol.wire import Array, Blob, Fixed, RecordSet, Text, Uuid, WireType

if TYPE_CHECKING:
    from penstock.protocol.codec import Codec

Read = Callable[..., tuple[Any, int]]

WATCH_AFTER = 20
"""Messages that a codec has read before anybody looks at their outlines."""

WATCHED_MAX = 20
"""Messages to look at until two in a row have the same outline; then it is not worth it."""

MISSES_MAX = 50
"""Messages of another outline after which a new one is looked for."""

OUTLINES_MAX = 8
"""Outlines that one codec learns in its life."""

VALUES_MAX = 64
TEXT_BYTES_MAX = 512


class Learner:
    """Reads with the ordinary decoder of a codec, and puts straight code in front of it where that pays."""

    def __init__(self, codec: Codec[Any], read: Read, classes: dict[str, Any]) -> None:
        self._codec = codec
        self._read = read
        self._classes = classes
        self._last = ""
        self._seen = -WATCH_AFTER
        self._misses = 0
        self._learnt = 0

    def __call__(self, data: Any, position: int = 0) -> tuple[Any, int]:
        """Read a message, and look at its outline."""
        if self._codec.decode is not self:
            return self._codec.decode(data, position)  # by somebody who keeps hold of this
        made = self._read(data, position)
        self._seen += 1
        if self._seen > 0:
            self._look_at(made[0])
        return made

    def _look_at(self, message: Any) -> None:
        outline = Outline()
        try:
            outline.message(self._codec.layout, message)
        except TooVaried:
            source = ""
        else:
            source = outline.source()
        if source and source == self._last:
            self._learnt += 1
            self._misses = 0
            title = f"{type(message).__name__} v{self._codec.version}"
            self._codec.decode = outline.compile(source, title, self._classes, self._missed)
        elif self._seen >= WATCHED_MAX:
            self._codec.decode = self._read
        self._last = source

    def _missed(self, data: Any, position: int) -> tuple[Any, int]:
        """Read what has another outline than the one that was learnt."""
        self._misses += 1
        if self._misses == MISSES_MAX:
            self._seen = 0
            self._codec.decode = self._read if self._learnt >= OUTLINES_MAX else self
        return self._read(data, position)


class TooVaried(Exception):
    """A message is too large, or has something in it that comes in many lengths."""


_NUMBERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""So many bytes are one number for `struct`, and numbers are compared faster than bytes."""


class Head(NamedTuple):
    """What is unpacked into a local or an attribute. If it must be certain bytes, `sent` has them."""

    target: str
    code: str
    sent: bytes = b""

    @property
    def value(self) -> int | bytes:
        """What is unpacked if these bytes are there."""
        return int.from_bytes(self.sent) if len(self.sent) in _NUMBERS else self.sent


class Outline:
    """The lengths and counts of one message, and code that reads messages which have the same."""

    def __init__(self) -> None:
        self._made: list[str] = []
        self._lines: list[str] = []
        self._filled: list[str] = []
        self._run: list[Head] = []
        self._unpacks: dict[str, Any] = {}
        self._count = 0
        self._text_bytes = 0

    def message(self, layout: StructLayout, message: Any) -> None:
        """Take a message in.

        Raises:
            TooVaried: it is not worth it.
        """
        made = self._struct(layout, message)
        if not self._run:
            # Otherwise the last run sees that nothing is missing.
            self._lines += ["if pos > len(data):", "    return missed(data, start)"]
        self._flush()
        self._filled.append(f"return {made}, pos")

    def source(self) -> str:
        """``read(data, start=0)``, which calls ``missed`` with the same arguments for what does not fit."""
        return "\n".join(
            [
                "def read(data, start=0):",
                "    pos = start",
                "    try:",
                *(f"        {line}" for line in [*self._made, *self._lines, *self._filled]),
                "    except (struct_error, IndexError, UnicodeDecodeError, DecodeError):",
                "        return missed(data, start)",
            ]
        )

    def compile(self, source: str, title: str, classes: dict[str, Any], missed: Read) -> Read:
        """The function itself. Tracebacks show its source under `title`."""
        namespace = {
            **classes,
            **self._unpacks,
            "missed": missed,
            "new": object.__new__,
            "read_length": read_uvarint,
            "struct_error": struct.error,
            "DecodeError": DecodeError,
        }
        filename = f"<penstock straight {title}>"
        exec(compile(source, filename, "exec"), namespace)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        read: Read = namespace["read"]
        return read

    def _local(self) -> str:
        self._count += 1
        if self._count > VALUES_MAX:
            raise TooVaried
        return f"value{self._count}"

    def _head(self, code: str, target: str = "") -> str:
        """A value of the next run; returns the target that will hold it, or else a local."""
        local = self._local()
        self._run.append(Head(target or local, code))
        return target or local

    def _expect(self, sent: bytes) -> None:
        """Bytes that stand here in every message of this outline."""
        if self._run and self._run[-1].sent:
            before = self._run.pop()
            local, sent = before.target, before.sent + sent
        else:
            local = self._local()
        self._run.append(Head(local, _NUMBERS.get(len(sent), f"{len(sent)}s"), sent))

    def _flush(self) -> None:
        """Write the run that was gathered, and the comparison of what is expected in it."""
        run, self._run = self._run, []
        if not run:
            return
        expected = [head for head in run if head.sent]
        differs = " or ".join([f"{head.target} != {head.value!r}" for head in expected])
        codes = ">" + "".join([head.code for head in run])
        size = struct.calcsize(codes)
        if run == expected:
            differs = f"data[pos : pos + {size}] != {expected[0].sent!r}"
        else:
            name = f"unpack{len(self._unpacks)}"
            self._unpacks[name] = Struct(codes).unpack_from
            self._lines.append(f"{', '.join([head.target for head in run])}, = {name}(data, pos)  # {codes}")
        if differs:
            self._lines += [f"if {differs}:", "    return missed(data, start)"]
        self._lines.append(f"pos += {size}")

    def _struct(self, layout: StructLayout, made: Any) -> str:
        """Take a struct in; return the local that holds it."""
        local = self._new(layout.spec)
        for field in layout.fields:
            target = f"{local}.{field.spec.slot}"
            value = self._value(field.wire, getattr(made, field.spec.attribute), target)
            if value != target:
                self._filled.append(f"{target} = {value}")
        if layout.flexible:
            self._expect(b"\0")
        for spec in [*layout.absent, *(field.spec for _, field in layout.tagged)]:
            self._filled.append(f"{local}.{spec.slot} = {self._default(layout, spec)}")
        return local

    def _new(self, spec: StructSpec) -> str:
        """Write the lines that make a struct without its fields; return the local that holds it."""
        local = self._local()
        self._made += [f"{local} = new({spec.name})", f"{local}.unknown_tags = None"]
        return local

    def _default(self, layout: StructLayout, spec: FieldSpec) -> str:
        """An expression for a new default."""
        if spec.default is not NewStruct:
            return "[]" if spec.default == () else repr(spec.default)
        if spec.is_made_late:
            return "None"
        inner = layout.structs[spec.widest.base]
        local = self._new(inner)
        self._filled += [f"{local}.{each.slot} = {self._default(layout, each)}" for each in inner.fields]
        return local

    def _value(self, wire: WireType, value: Any, target: str = "") -> str:
        """Take a value in; return an expression for it: `target` itself where it is unpacked into that."""
        if isinstance(wire, (Fixed, Uuid)):
            return self._head(wire.kind.code, target)
        if isinstance(wire, NullableStructure):
            self._expect(wire.kind.write(wire.null if value is None else 1))
        elif isinstance(wire, (Text, Blob, Array)) and value is None:
            self._expect(wire.length.kind.write(wire.length.null))
        if value is None:
            return "None"
        if isinstance(wire, Structure):
            return self._struct(wire.layout, value)
        if isinstance(wire, Text):
            return self._text(wire, value)
        if isinstance(wire, Blob):
            return self._blob(wire)
        if isinstance(wire, Array) and len(value) <= VALUES_MAX:
            self._expect(wire.length.kind.write(len(value) + wire.length.bias))
            return f"[{', '.join([self._value(wire.element, each) for each in value])}]"
        raise TooVaried

    def _text(self, wire: Text, value: str) -> str:
        size = len(value.encode())
        self._text_bytes += size
        if self._text_bytes > TEXT_BYTES_MAX:
            raise TooVaried
        self._expect(wire.length.kind.write(size + wire.length.bias))
        return f"{self._head(f'{size}s')}.decode()" if size else '""'

    def _blob(self, wire: Blob) -> str:
        """Bytes and records may have any length, so the run ends with what says it."""
        length = wire.length
        sent = self._head(length.kind.code)
        self._flush()
        if length.kind.is_varint:
            self._lines += [f"if {sent} > 127:", f"    {sent}, pos = read_length(data, pos - 1)"]
        local = self._local()
        taken = "memoryview(data)[pos:end]" if isinstance(wire, RecordSet) else "bytes(data[pos:end])"
        self._lines += [
            f"if {sent} < {length.bias}:",
            "    return missed(data, start)",
            f"end = pos + {sent}{' - 1' if length.bias else ''}",
            f"{local} = {taken}",
            "pos = end",
        ]
        return local
