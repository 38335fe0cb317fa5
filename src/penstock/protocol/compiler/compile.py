"""Compile the layout of a message into Python functions that decode and encode it.

The source is registered with `linecache`, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

import gc
import struct
import sys
from typing import Any

from penstock.errors import DecodeError, EncodeError
from penstock.protocol.compiler import runtime
from penstock.protocol.compiler.decode_emitter import DecodeEmitter
from penstock.protocol.compiler.encode_emitter import EncodeEmitter
from penstock.protocol.compiler.struct_types import decode_struct, encode_struct
from penstock.protocol.compiler.wire_type import StructLayout
from penstock.protocol.quoting import identifier, literal

_RUNTIME = {
    "DecodeError": DecodeError,
    "EncodeError": EncodeError,
    "new": object.__new__,
    "struct_error": struct.error,
    "pause_collector": runtime.pause_collector,
    "resume_collector": gc.enable,
    "check_tags": runtime.check_tags,
    "count_unknown_tags": runtime.count_unknown_tags,
    "read_tag": runtime.read_tag,
    "read_unknown_tags": runtime.read_unknown_tags,
    "write_tag_section": runtime.write_tag_section,
    "records_size": runtime.records_size,
    "add_records": runtime.add_records,
}


def decoder_source(layout: StructLayout, from_views: bool = False) -> tuple[str, dict[str, Any]]:
    """Return the source of a message's decoder, ``decode(data, pos=0)``, and the constants that it uses.

    The decoder takes bytes, the fastest input. A message with records, which must not be copied, has a second
    decoder, for any other buffer: `from_views` selects it. Both have one more parameter, for internal use.
    """
    out = DecodeEmitter(layout.spec.name, from_views)
    title = literal(f"{_title(layout)}: ")
    with out.block("def decode(data, pos=0, seen=None):"):
        if from_views:
            out.line("view = data = data if type(data) is memoryview else memoryview(data)")
        else:
            copied = "data = bytes(data if type(data) is memoryview else memoryview(data))"
            other = "return decode_view(data, pos)" if layout.holds_records else copied
            out.line("if type(data) is not bytes:")
            out.line(f"    {other}")
            if layout.holds_records:
                out.line("view = memoryview(data)")
        out.line("size = len(data)")
        out.line(f"paused = size > {runtime.PAUSE_BYTES_MIN} and pause_collector()")
        with out.block("try:"):
            decode_struct(out, layout, "message")
        out.line("except DecodeError as error:")
        out.line(f'    raise DecodeError({title} f"{{error}}") from None')
        out.line("except (struct_error, IndexError) as error:")
        short = "cut short: {size} bytes, and what begins at byte {pos} needs more"
        out.line(f'    raise DecodeError({title} f"{short}") from error')
        out.line("finally:")
        out.line("    if paused:")
        out.line("        resume_collector()")
        out.line("if pos > size:")
        out.line(f'    raise DecodeError({title} f"{{pos}} bytes expected, {{size}} found")')
        out.line("return message, pos")
    return out.source(), out.constants


def encoder_source(layout: StructLayout) -> tuple[str, dict[str, Any]]:
    """Return the source of ``encode(message)``, and the constants it needs, except `explain`."""
    out = EncodeEmitter(layout.spec.name)
    with out.block("def encode(message):"):
        out.line("parts = []")
        with out.block("try:"):
            _append_message(out, layout)
            out.line('return b"".join(parts)')
        out.line("except Exception as error:")
        out.line("    raise explain(message, error) from error")
    return out.source(), out.constants


def writer_source(layout: StructLayout) -> tuple[str, dict[str, Any]]:
    """Return the source of ``write(message, parts)``, and the constants it needs.

    The function returns True if a part may be too large to be joined with others, or may not be bytes.
    """
    out = EncodeEmitter(layout.spec.name)
    with out.block("def write(message, parts):"):
        out.line("large = False")
        _append_message(out, layout)
        out.line("return large")
    return out.source(), out.constants


def _append_message(out: EncodeEmitter, layout: StructLayout) -> None:
    out.line("append = parts.append")
    encode_struct(out, layout, "message")
    out.flush()


def build(
    name: str, layout: StructLayout, source: str, constants: dict[str, Any], classes: dict[str, Any]
) -> Any:
    """Compile source and return the function `name` in it."""
    filename = f"<penstock {name} {_title(layout)}>"
    namespace = {**_RUNTIME, **constants}
    for struct_name in (layout.spec.name, *layout.structs):
        namespace[identifier(struct_name)] = classes[struct_name]
    exec(compile(source, filename, "exec"), namespace)
    _Lines.register(filename, source)
    return namespace[name]


class _Lines:
    """Lines of generated source, for tracebacks. They go to the module `linecache` only if it is loaded."""

    @staticmethod
    def register(filename: str, source: str) -> None:
        import linecache

        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def _title(layout: StructLayout) -> str:
    return f"{layout.spec.name} v{layout.version}"


def classes_of(message_class: type) -> dict[str, Any]:
    """Return the namespace of the module that defines a message class: it contains the classes of structs."""
    return vars(sys.modules[message_class.__module__])
