"""The wire types of structs: generates code for their fields in order, and for their tagged fields."""

from __future__ import annotations

from typing import Any

from penstock.common.suggestions import short_repr
from penstock.protocol.compiler.decode_emitter import DecodeEmitter
from penstock.protocol.compiler.emitter import INT8, UVARINT
from penstock.protocol.compiler.encode_emitter import EncodeEmitter
from penstock.protocol.compiler.wire_type import Step, StepKind, StructLayout, WireType
from penstock.protocol.quoting import literal
from penstock.protocol.schema.definition import FieldSpec, NewStruct


class Structure(WireType):
    """The wire type of a struct that cannot be null: its fields, without a marker before them."""

    def __init__(self, layout: StructLayout) -> None:
        self.layout = layout

    @property
    def guide_name(self) -> str:
        return self.layout.spec.name

    @property
    def shape(self) -> tuple[object, ...]:
        return (Structure,)

    @property
    def struct(self) -> StructLayout:
        return self.layout

    @property
    def holds_records(self) -> bool:
        return self.layout.holds_records

    @property
    def holds_blobs(self) -> bool:
        return self.layout.holds_blobs

    def decode(self, out: DecodeEmitter, target: str) -> None:
        made = target if target.isidentifier() else out.name("part")
        decode_struct(out, self.layout, made)
        if made != target:
            out.line(f"{target} = {made}")

    def encode(self, out: EncodeEmitter, value: str) -> None:
        struct = value if value.isidentifier() else out.name("part")
        if struct != value:
            out.line(f"{struct} = {value}")
        encode_struct(out, self.layout, struct)

    def steps(self) -> list[Step]:
        return self.layout.steps()

    def problem(self, value: Any) -> str | None:
        return struct_problem(self.layout, value)


class NullableStructure(Structure):
    """The wire type of a struct that may be null: a marker before it shows if it is present.

    The marker is an int8, -1 for null; for a tagged field, as Kafka writes it, a varint, 0 for null.
    """

    is_null_allowed = True

    @property
    def guide_name(self) -> str:
        return f"NULLABLE {super().guide_name}"

    @property
    def shape(self) -> tuple[object, ...]:
        return NullableStructure, self.null

    def __init__(self, layout: StructLayout, is_tagged: bool) -> None:
        super().__init__(layout)
        self.kind, self.null = (UVARINT, 0) if is_tagged else (INT8, -1)

    def decode(self, out: DecodeEmitter, target: str) -> None:
        mark = out.name("mark")
        out.head(mark, self.kind)
        with out.block(f"if {mark} <= {self.null}:"):
            out.line(f"{target} = None")
        with out.block("else:"):
            super().decode(out, target)

    def encode(self, out: EncodeEmitter, value: str) -> None:
        with out.block(f"if {value} is None:"):
            out.head(str(self.null), self.kind)
        with out.block("else:"):
            out.head("1", self.kind)
            super().encode(out, value)

    def steps(self) -> list[Step]:
        return [Step(StepKind.NULLABLE, 0, None, super().steps())]

    def problem(self, value: Any) -> str | None:
        return None if value is None else super().problem(value)


def decode_struct(out: DecodeEmitter, layout: StructLayout, struct: str) -> None:
    """Write code that creates a struct and decodes its fields.

    `struct` is the local variable of the generated code that gets the struct.
    """
    out.line(f"{struct} = new({layout.spec.name})")
    out.line(f"{struct}.unknown_tags = None")
    for spec in layout.absent:
        _assign_default(out, layout, spec, struct)
    for field in layout.fields:
        out.path.append(field.spec.name)
        field.wire.decode(out, f"{struct}.{field.spec.slot}")
        out.path.pop()
    if not layout.flexible:
        return
    for _, field in layout.tagged:
        _assign_default(out, layout, field.spec, struct)
    function = _decode_tags_function(out, layout) if layout.tagged else ""
    with out.tags() as tags:
        if function:
            out.line(f"pos = {function}({struct}, data, pos, size, {tags}, seen)")
        else:
            out.line(f"{struct}.unknown_tags, pos = read_unknown_tags(data, pos, size, {tags}, seen)")


def _assign_default(out: DecodeEmitter, layout: StructLayout, spec: FieldSpec, struct: str) -> None:
    """Write code that sets a field to its default.

    A struct is created in that code, unless it is created on first use.
    """
    target = f"{struct}.{spec.slot}"
    if spec.default is not NewStruct:
        out.line(f"{target} = {'[]' if spec.default == () else repr(spec.default)}")
        return
    if spec.is_made_late:
        out.line(f"{target} = None")
        return
    inner = layout.structs[spec.widest.base]
    made = out.name("plain")
    out.line(f"{made} = {target} = new({inner.name})")
    out.line(f"{made}.unknown_tags = None")
    for each in inner.fields:
        _assign_default(out, layout, each, made)


def _decode_tags_function(out: DecodeEmitter, layout: StructLayout) -> str:
    """Generate a function that decodes the tagged fields of a struct; return the function's name."""
    name = f"read_tags_{layout.spec.name}"
    if name in out.functions:
        return name
    inner = out.function(f"def {name}(holder, data, pos, size, tags, seen):")
    inner.line("check_tags(tags, size - pos)")
    inner.line("last = -1")
    with inner.block("for _ in range(tags):"):
        inner.line("last, pos, tag_end = read_tag(data, pos, size, last)")
        for position, (tag, field) in enumerate(layout.tagged):
            with inner.block(f"{'el' if position else ''}if last == {tag}:"):
                inner.path.append(field.spec.name)
                field.wire.decode(inner, f"holder.{field.spec.slot}")
                inner.flush()
                inner.line("if pos > tag_end:")
                inner.line(f"    {inner.refuse('longer than its tagged field')}")
                inner.path.pop()
        with inner.block("else:"):
            inner.line("count_unknown_tags(seen, 1)")
            inner.line("if holder.unknown_tags is None:")
            inner.line("    holder.unknown_tags = {}")
            inner.line("holder.unknown_tags[last] = bytes(data[pos:tag_end])")
        inner.line("pos = tag_end")
    inner.line("return pos")
    out.finish(name, inner)
    return name


def encode_struct(out: EncodeEmitter, layout: StructLayout, struct: str) -> None:
    """Write code that encodes a struct. `struct` is the local variable that holds it."""
    strict = [not_default(layout, spec, struct) for spec in layout.absent if not spec.ignorable]
    if not layout.flexible:
        strict.append(f"{struct}.unknown_tags")
    if strict:
        out.line(f"if {' or '.join(strict)}:")
        out.line(f"    {out.refuse('a field is set that this version does not have')}")
    for field in layout.fields:
        out.path.append(field.spec.name)
        field.wire.encode(out, f"{struct}.{field.spec.attribute}")
        out.path.pop()
    if not layout.flexible:
        return
    changed = [not_default(layout, field.spec, struct) for _, field in layout.tagged]
    function = _encode_tags_function(out, layout) if changed else ""
    section = f"{function}({struct})" if changed else f"write_tag_section({{}}, {struct}.unknown_tags)"
    out.tags(f"{' or '.join([f'{struct}.unknown_tags', *changed])}", section)


def _encode_tags_function(out: EncodeEmitter, layout: StructLayout) -> str:
    """Generate a function that encodes the tagged fields of a struct; return the function's name."""
    name = f"write_tags_{layout.spec.name}"
    if name in out.functions:
        return name
    inner = out.function(f"def {name}(holder):")
    inner.line("known = {}")
    for tag, field in layout.tagged:
        inner.path.append(field.spec.name)
        with inner.block(f"if {not_default(layout, field.spec, 'holder')}:"):
            inner.line("parts = []")
            inner.line("append = parts.append")
            field.wire.encode(inner, f"holder.{field.spec.slot}")
            inner.flush()
            inner.line(f'known[{tag}] = b"".join(parts)')
        inner.path.pop()
    inner.line("return write_tag_section(known, holder.unknown_tags)")
    out.finish(name, inner)
    return name


def not_default(layout: StructLayout, spec: FieldSpec, struct: str) -> str:
    """Return Python source of a condition: true if a field of the struct `struct` is not at its default."""
    default, value = spec.default, f"{struct}.{spec.slot}"
    if default is None:
        return f"{value} is not None"
    if default is NewStruct:
        inner = layout.structs[spec.widest.base]
        parts = [not_default(layout, each, value) for each in inner.fields]
        differs = " or ".join([*parts, f"{value}.unknown_tags"])
        if spec.is_made_late:
            return f"({value} is not None and ({differs}))"
        return f"({value} is None or {differs})" if spec.nullable else f"({differs})"
    if default is True:
        return f"not {value}"
    if default:
        return f"{value} != {literal(default)}"
    return f"({value} is None or {value})" if spec.nullable else value


def has_default(layout: StructLayout, spec: FieldSpec, struct: Any) -> bool:
    """Return True if a field of the object `struct` is at its default; `not_default` generates such code."""
    default, value = spec.default, getattr(struct, spec.attribute)
    if default is None or value is None:
        return value is default
    if default is NewStruct:
        inner = layout.structs[spec.widest.base]
        return not value.unknown_tags and all(has_default(layout, each, value) for each in inner.fields)
    if default:
        return bool(value == default)
    return not value


def struct_problem(layout: StructLayout, value: Any) -> str | None:
    """Return the path of the field because of which a struct cannot be encoded, and the reason, or None."""
    if value is None:
        return ": null is not allowed"
    for spec in layout.absent:
        if not spec.ignorable and getattr(value, spec.attribute, None) != getattr(
            type(value)(), spec.attribute
        ):
            return f".{spec.name}: is set, but version {layout.version} does not have it"
    for field in [*layout.fields, *(each for _, each in layout.tagged)]:
        if not hasattr(value, field.spec.attribute):
            return f": {short_repr(value)} is no {layout.spec.name}"
        problem = field.wire.problem(getattr(value, field.spec.attribute))
        if problem:
            return f".{field.spec.name}{problem}"
    if value.unknown_tags and not layout.flexible:
        return f": unknown_tags are set, but version {layout.version} has no tagged fields"
    return None
