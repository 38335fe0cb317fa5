"""Writing the source of codecs: heads are gathered into runs, tails are written out between them.

Every wire type begins with a head of fixed size: the value itself, or the length in front of it.
Heads of adjacent fields form a run, which one call of `struct` reads or writes. A varint takes part
as the single byte that it nearly always is; a test of that byte leads to the slow path otherwise.
An array of fixed-size elements leads the run that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

from penstock.protocol import runtime


class HeadKind:
    """How a head looks on the wire.

    A varint takes part in runs as the one byte of a small value: `code` is that byte's. `read` and
    `write` are for values of any size. What a small byte stands for is looked up in `small`, if given.
    """

    __slots__ = ("code", "name", "read", "size", "small", "write")

    def __init__(
        self,
        name: str,
        code: str,
        size: int,
        read: runtime.HeadReader | None,
        write: runtime.HeadWriter,
        small: tuple[int, ...] | None = None,
    ) -> None:
        self.name = name
        self.code = code
        self.size = size
        self.read = read
        self.write = write
        self.small = small

    @property
    def is_varint(self) -> bool:
        return self.read is not None


class ArrayLead:
    """An array of fixed-size elements that a run begins with; `sent` is the local with its count."""

    __slots__ = ("bias", "kind", "sent", "values")

    def __init__(self, values: str, sent: str, kind: HeadKind, bias: int) -> None:
        self.values = values
        self.sent = sent
        self.kind = kind
        self.bias = bias


def fixed_kind(code: str) -> HeadKind:
    """The head of a value that `struct` describes by `code`."""
    one = Struct(">" + code)
    return HeadKind(_CODE_NAMES.get(code, code), code, one.size, None, one.pack)


_CODE_NAMES = {"?": "o", "16s": "u"}

UVARINT = HeadKind("v", "B", 1, runtime.read_uvarint, runtime.write_uvarint)
INT8, INT16, INT32 = fixed_kind("b"), fixed_kind("h"), fixed_kind("i")

TAKEN = frozenset(
    ("append", "data", "end", "holder", "known", "last", "message", "parts", "pos", "size", "tag_end", "tags")
)
"""Locals that compiled functions use for themselves."""

Run = list[tuple[str, HeadKind]]


def codes_of(run: Run) -> str:
    """The struct format of a run."""
    return "".join(kind.code for _, kind in run)


def name_of(run: Run) -> str:
    """A run as part of a Python name."""
    return "".join(kind.name for _, kind in run)


def singly(run: Run) -> list[Run]:
    """A run cut so that each varint stands alone."""
    pieces: list[Run] = []
    for head in run:
        if head[1].is_varint or not pieces or pieces[-1][-1][1].is_varint:
            pieces.append([])
        pieces[-1].append(head)
    return pieces


class Emitter:
    """Lines of Python, the constants they use, and the run of heads that is not written yet."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.functions: dict[str, list[str]] = {}
        self.path: list[str] = []
        self._indent = 0
        self._names: dict[str, int] = {}
        self._run: Run = []
        self._lead: ArrayLead | None = None

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """An indented block. No run reaches into it or out of it."""
        self.flush()
        self.line(opening)
        self._indent += 1
        before = len(self.lines)
        yield
        self.flush()
        if len(self.lines) == before:
            self.line("pass")
        self._indent -= 1

    def name(self, stem: str) -> str:
        """A new local name."""
        number = self._names[stem] = self._names.get(stem, stem in TAKEN) + 1
        return stem if number == 1 else f"{stem}{number}"

    def constant(self, name: str, value: Any) -> str:
        """Make `value` known to the compiled code under `name`, or a name like it."""
        candidate, number = name, 1
        while candidate in self.constants and self.constants[candidate] != value:
            number += 1
            candidate = f"{name}_{number}"
        self.constants[candidate] = value
        return candidate

    def shared(self, name: str, make: Any) -> str:
        """A constant that is made once for its name."""
        if name not in self.constants:
            self.constants[name] = make()
        return name

    def finish(self, name: str, inner: Emitter) -> None:
        """Take in a function that was written on the side."""
        inner.flush()
        self.functions[name] = inner.lines

    def source(self) -> str:
        """All that was written, functions on the side first."""
        return "\n\n\n".join("\n".join(lines) for lines in [*self.functions.values(), self.lines]) + "\n"

    def _beside(self, inner: Emitter, opening: str) -> None:
        """Prepare an emitter for a function on the side: it shares the constants."""
        inner.constants = self.constants
        inner.functions = self.functions
        inner.path = list(self.path)
        inner.line(opening)
        inner._indent = 1

    @property
    def where(self) -> str:
        """The field that is being written, for messages."""
        return ".".join([self.title, *self.path])

    def head(self, expression: str, kind: HeadKind) -> None:
        """Add a head to the run. For reading, the expression is where the value goes."""
        self._run.append((expression, kind))

    def lead(self, array: ArrayLead) -> None:
        """Begin a new run with the elements of an array."""
        self.flush()
        self._lead = array

    def flush(self) -> None:
        """Write the run that was gathered."""
        if self._run or self._lead:
            run, lead = self._run, self._lead
            self._run, self._lead = [], None
            self.write_run(run, lead)

    def write_run(self, run: Run, lead: ArrayLead | None) -> None:
        raise NotImplementedError


class DecodeEmitter(Emitter):
    """Source that reads. Locals: `data`, `pos`, `size`."""

    def __init__(self, title: str, view: bool) -> None:
        super().__init__(title)
        self.view = view

    def function(self, opening: str) -> DecodeEmitter:
        """An emitter for a function on the side, to be handed to `finish`."""
        inner = DecodeEmitter(self.title, self.view)
        self._beside(inner, opening)
        return inner

    def text(self, start: str, end: str) -> str:
        """An expression for the string between two positions."""
        return f'str(data[{start}:{end}], "utf-8")' if self.view else f"data[{start}:{end}].decode()"

    def bytes(self, start: str, end: str) -> str:
        """An expression for the bytes between two positions."""
        return f"bytes(data[{start}:{end}])" if self.view else f"data[{start}:{end}]"

    def refuse(self, problem: str) -> str:
        """A statement that raises DecodeError about the current field."""
        return f'raise DecodeError("{self.where}: {problem}")'

    def write_run(self, run: Run, lead: ArrayLead | None) -> None:
        targets = [self.name("small") if kind.small else target for target, kind in run]
        start = self._write_unpack(run, lead, targets)
        size = sum(kind.size for _, kind in run)
        step = f"pos += {size}" if start == "pos" else f"pos = {start} + {size}" if size else f"pos = {start}"
        varints = [target for target, (_, kind) in zip(targets, run, strict=True) if kind.is_varint]
        if not varints:
            self.line(step)
            return
        self.line(f"if {' | '.join(varints)} > 127:")
        self.line(f"    {', '.join(target for target, _ in run)}, pos = {self._long(run)}(data, {start})")
        self.line("else:")
        self.line(f"    {step}")
        for target, (final, kind) in zip(targets, run, strict=True):
            if kind.small:
                self.line(f"    {final} = {self.constant('zigzag', kind.small)}[{target}]")

    def _write_unpack(self, run: Run, lead: ArrayLead | None, targets: list[str]) -> str:
        """Write the line that reads a run, and return where the heads begin."""
        codes = codes_of(run)
        if lead:
            element = lead.kind
            name = f"unpack_{element.name}s_{name_of(run)}{'' if lead.bias else '_plain'}"
            unpack = self.shared(name, lambda: runtime.ArrayUnpackers(element.code, codes, lead.bias))
            left = ", ".join([f"*{lead.values}", *targets]) + ("" if targets else ",")
            self.line(f"{left} = {unpack}[{lead.sent}](data, pos)")
            count = f"({lead.sent} - {lead.bias})" if lead.bias else lead.sent
            return f"pos + {element.size} * {count}"
        if codes == "B":
            self.line(f"{targets[0]} = data[pos]")
        elif run:
            unpack = self.shared(f"unpack_{name_of(run)}", lambda: Struct(">" + codes).unpack_from)
            self.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {unpack}(data, pos)")
        return "pos"

    def _long(self, run: Run) -> str:
        """A function that reads a run in which some varint is long. A single one has its own."""
        if len(run) == 1:
            return self.constant(f"read_{run[0][1].name}", run[0][1].read)
        name = f"read_{name_of(run)}"
        if name not in self.functions:
            inner = self.function(f"def {name}(data, pos):")
            values = [f"value{number}" for number, _ in enumerate(run)]
            for piece in singly([(value, kind) for value, (_, kind) in zip(values, run, strict=True)]):
                inner.write_run(piece, None)
            inner.line(f"return {', '.join(values)}, pos")
            self.finish(name, inner)
        return name


class EncodeEmitter(Emitter):
    """Source that writes. Locals: `parts` and its `append`."""

    def function(self, opening: str) -> EncodeEmitter:
        """An emitter for a function on the side, to be handed to `finish`."""
        inner = EncodeEmitter(self.title)
        self._beside(inner, opening)
        return inner

    def tags(self, condition: str, section: str) -> None:
        """Write a section of tagged fields: nearly always it is empty and joins the run."""
        run, lead = self._run, self._lead
        self._run, self._lead = [], None
        with self.block(f"if {condition}:"):
            if run or lead:
                self.write_run(run, lead)
            self.line(f"append({section})")
        with self.block("else:"):
            self.write_run([*run, ("0", UVARINT)], lead)

    def before(self, text: str) -> None:
        """A line that must come before the run being gathered is written."""
        self.line(text)

    def refuse(self, problem: str) -> str:
        """A statement that raises EncodeError about the current field."""
        return f'raise EncodeError("{self.where}: {problem}")'

    def write_run(self, run: Run, lead: ArrayLead | None) -> None:
        values = [value for value, _ in run]
        if not lead and all(value.lstrip("-").isdigit() for value in values):
            self.line(f"append({b''.join(kind.write(int(value)) for value, kind in run)!r})")
            return
        varints = [value for value, kind in run if kind.is_varint and not value.isdigit()]
        if not varints:
            self.line(self._pack(run, lead))
            return
        self.line(f"if 0 <= {' | '.join(varints)} < 128:")
        self.line(f"    {self._pack(run, lead)}")
        self.line("else:")
        if lead:
            self.line(f"    {self._pack([], lead)}")
        self.line(f"    append({self._long(run)}({', '.join(values)}))")

    def _pack(self, run: Run, lead: ArrayLead | None) -> str:
        """A statement that appends a run, each varint in one byte."""
        codes = codes_of(run)
        values = [value for value, _ in run]
        if lead:
            element = lead.kind
            name = f"pack_{element.name}s_{name_of(run)}{'' if lead.bias else '_plain'}"
            pack = self.shared(name, lambda: runtime.ArrayPackers(element.code, codes, lead.bias))
            return f"append({pack}[{lead.sent}]({', '.join([f'*{lead.values}', *values])}))"
        if codes == "B":
            return f"append({self.constant('one_byte', runtime.ONE_BYTE)}[{values[0]}])"
        return f"append({self._packer(run)}({', '.join(values)}))"

    def _packer(self, run: Run) -> str:
        return self.shared(f"pack_{name_of(run)}", lambda: Struct(">" + codes_of(run)).pack)

    def _long(self, run: Run) -> str:
        """A function that makes the bytes of a run in which some varint is long."""
        if len(run) == 1:
            return self.constant(f"write_{run[0][1].name}", run[0][1].write)
        name = f"write_{name_of(run)}"
        if name not in self.functions:
            values = [f"value{number}" for number, _ in enumerate(run)]
            inner = self.function(f"def {name}({', '.join(values)}):")
            pieces = []
            for piece in singly([(value, kind) for value, (_, kind) in zip(values, run, strict=True)]):
                arguments = ", ".join(value for value, _ in piece)
                function = self._long(piece) if piece[0][1].is_varint else self._packer(piece)
                pieces.append(f"{function}({arguments})")
            inner.line(f"return {' + '.join(pieces)}")
            self.finish(name, inner)
        return name
