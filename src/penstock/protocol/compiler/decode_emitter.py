"""Generates the source of decoders: one `struct` call unpacks adjacent fields directly into their targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct

from penstock.protocol.compiler import runtime
from penstock.protocol.compiler.emitter import UVARINT, ArrayPart, Emitter, Run, codes_of, name_of, singly
from penstock.protocol.quoting import literal


class DecodeEmitter(Emitter):
    """Collects a decoder's source. Its locals: `data`, `pos`, `size`, `seen` (counter of unknown tags)."""

    def __init__(self, title: str, view: bool) -> None:
        super().__init__(title)
        self.view = view
        self._lead: ArrayPart | None = None
        self._whole = "view"

    def function(self, opening: str) -> DecodeEmitter:
        """Return an emitter for a separate function, which `finish` adds to the source."""
        inner = DecodeEmitter(self.title, self.view)
        inner._whole = "data" if self.view else "memoryview(data)"
        self._beside(inner, opening)
        return inner

    def text(self, start: str, end: str) -> str:
        """Return a Python expression that decodes the string between two positions; any bytes decode."""
        how = f"'utf-8', {runtime.MALFORMED!r}"
        return f"str(data[{start}:{end}], {how})" if self.view else f"data[{start}:{end}].decode({how})"

    def bytes(self, start: str, end: str) -> str:
        """Return a Python expression for a copy of the bytes between two positions."""
        return f"bytes(data[{start}:{end}])" if self.view else f"data[{start}:{end}]"

    def uncopied(self, start: str, end: str) -> str:
        """Return a Python expression for a view of the bytes between two positions."""
        return f"{self._whole}[{start}:{end}]"

    def refuse(self, problem: str) -> str:
        """Return a Python statement that raises DecodeError about the current field."""
        return f"raise DecodeError({literal(f'{self.where}: {problem}')})"

    def array(self, part: ArrayPart) -> None:
        # Where the elements end is known only when their count has been read: they lead a new run.
        self.flush()
        self._lead = part

    @contextmanager
    def tags(self) -> Iterator[str]:
        """Write a block of code that runs if there are tagged fields; yield the local with their count."""
        tags = self.name("tags")
        if self._run or self._lead:
            self.head(tags, UVARINT)
            with self.block(f"if {tags}:"):
                self._count_tags()
                yield tags
            return
        with self.block("if data[pos]:"):
            self.line(f"{tags}, pos = {self.constant('read_v', UVARINT.read)}(data, pos)")
            self._count_tags()
            yield tags
        self.line("else:")
        self.line("    pos += 1")

    def _count_tags(self) -> None:
        """Write code that creates the counter of a message's unknown tagged fields if there is none yet."""
        self.line("if seen is None:")
        self.line("    seen = [0]")

    def flush(self) -> None:
        if self._run or self._lead:
            run, lead = self._run, self._lead
            self._run, self._lead = [], None
            self.write_run(run, lead)

    def write_run(self, run: Run, lead: ArrayPart | None) -> None:
        targets = [self.name("small") if kind.small else target for target, kind in run]
        start = self._write_unpack(run, lead, targets)
        size = sum(kind.size for _, kind in run)
        step = f"pos += {size}" if start == "pos" else f"pos = {start} + {size}" if size else f"pos = {start}"
        varints = [target for target, (_, kind) in zip(targets, run, strict=True) if kind.is_varint]
        if not varints:
            self.line(step)
            return
        self.line(f"if {' | '.join(varints)} > 127:")
        indent = "    "
        if run[-1][1].mostly_two and varints == targets[-1:]:
            more = self.name("more")
            self.line(f"    {more} = data[{start} + {size}]")
            self.line(f"    if {more} < 128:")
            self.line(f"        {targets[-1]} = {targets[-1]} & 127 | {more} << 7")
            self.line(f"        pos = {start} + {size + 1}")
            self.line("    else:")
            indent = "        "
        targeted = ", ".join(target for target, _ in run)
        self.line(f"{indent}{targeted}, pos = {self._long(run)}(data, {start})")
        self.line("else:")
        self.line(f"    {step}")
        for target, (final, kind) in zip(targets, run, strict=True):
            if kind.small:
                self.line(f"    {final} = {self.constant('zigzag', kind.small)}[{target}]")

    def _write_unpack(self, run: Run, lead: ArrayPart | None, targets: list[str]) -> str:
        """Write the line that unpacks the fixed-size parts of adjacent fields.

        Returns an expression for the position of the first of them.
        """
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
        """Return the name of a function that reads adjacent fields if a varint has more than one byte."""
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
