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
    """How a head looks on the wire. For a varint, `code` is the one byte of a small value."""

    __slots__ = ("code", "is_varint", "read", "size", "write")

    def __init__(
        self,
        code: str,
        size: int,
        read: runtime.HeadReader,
        write: runtime.HeadWriter,
        is_varint: bool = False,
    ) -> None:
        self.code = code
        self.size = size
        self.read = read
        self.write = write
        self.is_varint = is_varint


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
    return HeadKind(code, one.size, runtime.fixed_reader(code), one.pack)


UVARINT = HeadKind("B", 1, runtime.read_uvarint, runtime.write_uvarint, is_varint=True)
INT8, INT16, INT32 = fixed_kind("b"), fixed_kind("h"), fixed_kind("i")

TAKEN = frozenset(
    ("append", "data", "end", "holder", "known", "last", "message", "parts", "pos", "size", "tag_end", "tags")
)
"""Locals that compiled functions use for themselves."""

_CODE_NAMES = str.maketrans({"?": "o", ">": ""})


def code_name(code: str) -> str:
    """A struct format as part of a Python name."""
    return code.replace("16s", "u").translate(_CODE_NAMES)


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
        self._run: list[tuple[str, HeadKind]] = []
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

    def write_run(self, run: list[tuple[str, HeadKind]], lead: ArrayLead | None) -> None:
        raise NotImplementedError

    @staticmethod
    def _codes(run: list[tuple[str, HeadKind]]) -> str:
        return "".join(kind.code for _, kind in run)


class DecodeEmitter(Emitter):
    """Source that reads. Locals: `data`, `pos`, `size`."""

    def __init__(self, title: str, view: bool) -> None:
        super().__init__(title)
        self.view = view
        self._after: list[str] = []

    def after(self, text: str) -> None:
        """A line that follows the run being gathered."""
        self._after.append(text)

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

    def flush(self) -> None:
        super().flush()
        after, self._after = self._after, []
        for text in after:
            self.line(text)

    def write_run(self, run: list[tuple[str, HeadKind]], lead: ArrayLead | None) -> None:
        codes = self._codes(run)
        size = sum(kind.size for _, kind in run)
        targets = [target for target, _ in run]
        start = "pos"
        if lead:
            name = (
                f"unpack_array_{code_name(lead.kind.code)}_{code_name(codes)}{'' if lead.bias else '_plain'}"
            )
            unpack = self.shared(name, lambda: runtime.ArrayUnpackers(lead.kind.code, codes, lead.bias))
            left = ", ".join([f"*{lead.values}", *targets]) + ("" if targets else ",")
            self.line(f"{left} = {unpack}[{lead.sent}](data, pos)")
            start = (
                f"pos + {lead.kind.size} * ({lead.sent} - 1)"
                if lead.bias
                else f"pos + {lead.kind.size} * {lead.sent}"
            )
        elif codes == "B":
            self.line(f"{targets[0]} = data[pos]")
        else:
            unpack = self.shared(f"unpack_{code_name(codes)}", lambda: Struct(">" + codes).unpack_from)
            self.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {unpack}(data, pos)")
        step = f"pos = {start} + {size}" if lead and size else f"pos = {start}" if lead else f"pos += {size}"
        varints = [target for target, kind in run if kind.is_varint]
        if not varints:
            self.line(step)
            return
        readers = tuple(kind.read for _, kind in run)
        heads = self.constant(f"heads_{code_name(codes)}", readers)
        self.line(f"if {' | '.join(varints)} > 127:")
        self.line(f"    {', '.join(targets)}, pos = read_heads(data, {start}, {heads})")
        self.line("else:")
        self.line(f"    {step}")


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

    def write_run(self, run: list[tuple[str, HeadKind]], lead: ArrayLead | None) -> None:
        codes = self._codes(run)
        values = [value for value, _ in run]
        if lead:
            name = f"pack_array_{code_name(lead.kind.code)}_{code_name(codes)}{'' if lead.bias else '_plain'}"
            pack = self.shared(name, lambda: runtime.ArrayPackers(lead.kind.code, codes, lead.bias))
            fast = f"append({pack}[{lead.sent}]({', '.join([f'*{lead.values}', *values])}))"
        elif all(value.lstrip("-").isdigit() for value in values):
            self.line(f"append({b''.join(kind.write(int(value)) for value, kind in run)!r})")
            return
        else:
            pack = self.shared(f"pack_{code_name(codes)}", lambda: Struct(">" + codes).pack)
            fast = f"append({pack}({', '.join(values)}))"
        varints = [value for value, kind in run if kind.is_varint and not value.isdigit()]
        if not varints:
            self.line(fast)
            return
        writers = self.constant(f"heads_{code_name(codes)}", tuple(kind.write for _, kind in run))
        self.line(f"if 0 <= {' | '.join(varints)} < 128:")
        self.line(f"    {fast}")
        self.line("else:")
        if lead:
            name = f"pack_array_{code_name(lead.kind.code)}_{'' if lead.bias else '_plain'}"
            pack = self.shared(name, lambda: runtime.ArrayPackers(lead.kind.code, "", lead.bias))
            self.line(f"    append({pack}[{lead.sent}](*{lead.values}))")
        self.line(f"    append(write_heads({writers}, {', '.join(values)}))")
