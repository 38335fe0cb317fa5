"""Converts Arrow arrays to the form that the compiled kernels use: numpy arrays of offsets and of bytes.

The memory of the Arrow array is used without a copy where possible.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ConfigError
from penstock.records.columns import empty
from penstock.records.kernels.compiled import Bytes, Int32s

_NOTHING = np.zeros(0, np.uint8)
_NOTHING.flags.writeable = False


class Texts(NamedTuple):
    """A string or binary column as numpy arrays, for the compiled kernels.

    `nulls` has a 1 for each null row; it is empty if none is null.
    """

    ends: Int32s
    data: Bytes
    nulls: Bytes


class HeaderLists(NamedTuple):
    """A headers column as numpy arrays: row i has headers ``firsts[i]`` to ``lasts[i] - 1``."""

    firsts: Int32s
    lasts: Int32s
    names: Texts
    values: Texts


def zeros(size: int, dtype: type) -> Any:
    """Return a zeroed numpy array in memory from Arrow's pool, which is faster than newly mapped memory."""
    array = empty(size, dtype)
    array.fill(0)
    return array


def read_only(array: Any) -> Any:
    """Make a numpy array read-only, since its memory may be shared with an Arrow array; return the array."""
    array.flags.writeable = False
    return array


def buffer_bytes(buffer: Any) -> Bytes:
    """Return the bytes of an Arrow buffer as a numpy array; for a missing buffer, return an empty array."""
    if buffer is None or buffer.size == 0:
        return _NOTHING
    array: Bytes = read_only(np.frombuffer(buffer, np.uint8))
    return array


def null_flags(array: Any) -> Bytes:
    """Return a byte per entry of an Arrow array, 1 for a null; an empty array if there are no nulls."""
    if array.null_count == 0:
        return _NOTHING
    flags = array.is_null().to_numpy(zero_copy_only=False).view(np.uint8)
    result: Bytes = read_only(flags)
    return result


def texts_of(array: Any, kind: Any) -> Texts:
    """Convert an Arrow column of strings or bytes to `Texts`; `kind` is pa.string() or pa.binary().

    Raises:
        ConfigError: the column contains neither text nor bytes.
    """
    if array.type != kind:
        if not _is_texty(array.type):
            raise ConfigError(f"a column of {kind} is needed, not of {array.type}")
        array = (
            array.cast(pa.binary()) if kind == pa.binary() or array.type == pa.binary() else array.cast(kind)
        )
    _, offsets, data = array.buffers()
    if offsets is None or offsets.size == 0:
        return Texts(read_only(zeros(len(array) + 1, np.int32)), _NOTHING, null_flags(array))
    ends = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    return Texts(read_only(ends), buffer_bytes(data), null_flags(array))


def _is_texty(kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _is_texty(kind.value_type)
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
        or types.is_null(kind)
        or types.is_fixed_size_binary(kind)
    )


def header_lists(array: Any) -> HeaderLists:
    """Return a headers column (a list of structs of name and value) as `HeaderLists`.

    Raises:
        ConfigError: the column has another type.
    """
    kind = array.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_struct(kind.value_type) or kind.value_type.num_fields != 2:
        raise ConfigError(f"headers must be list<struct<key: string, value: binary>>, not {kind}")
    # astype keeps int32 offsets as they are and narrows those of large lists.
    offsets = array.offsets.to_numpy().astype(np.int32, copy=False)
    firsts, lasts = offsets[:-1], offsets[1:]
    if array.null_count:
        lasts = np.where(array.is_null().to_numpy(zero_copy_only=False), firsts, lasts)
    structs = array.values
    names, values = structs.flatten() if structs.null_count else (structs.field(0), structs.field(1))
    if names.null_count:
        names = pc.fill_null(names, "")
    return HeaderLists(
        read_only(firsts), read_only(lasts), texts_of(names, pa.string()), texts_of(values, pa.binary())
    )


class Entries(NamedTuple):
    """A map column as numpy arrays: the end index of each row's entries, and all names and values."""

    ends: Int32s
    names: Texts
    values: Texts


def map_entries(array: Any) -> Entries:
    """Return a column of map<string, string> as `Entries`.

    Raises:
        ConfigError: the column has another type.
    """
    if not pa.types.is_map(array.type):
        raise ConfigError(f"extensions must be map<string, string>, not {array.type}")
    ends = array.offsets.to_numpy()
    if array.null_count and np.diff(ends)[array.is_null().to_numpy(zero_copy_only=False)].any():
        return map_entries(array.take(pa.array(np.arange(len(array)))))  # nulls that span entries lose them
    return Entries(read_only(ends), texts_of(array.keys, pa.string()), texts_of(array.items, pa.string()))


def constant_texts(text: bytes, size: int) -> Texts:
    """Return a `Texts` column that repeats one text in every row."""
    data = np.tile(np.frombuffer(text, np.uint8), size)
    ends = np.arange(0, (size + 1) * len(text), len(text), dtype=np.int32)
    return Texts(read_only(ends), read_only(data), _NOTHING)


def no_texts(size: int) -> Texts:
    """Return a `Texts` column of `size` nulls."""
    return Texts(read_only(zeros(size + 1, np.int32)), _NOTHING, read_only(np.ones(size, np.uint8)))


def text_at(texts: Texts, row: int) -> bytes | None:
    """Return the bytes of the text in one row of a column, or None for a null."""
    if len(texts.nulls) and texts.nulls[row]:
        return None
    return texts.data[texts.ends[row] : texts.ends[row + 1]].tobytes()


def text_array(kind: Any, ends: Int32s, data: Bytes, valid: Bytes, nulls: int) -> Any:
    """Return an Arrow array of type `kind` made of offsets, bytes and, if it has nulls, validity bits."""
    bits = pa.py_buffer(valid) if nulls else None
    return pa.Array.from_buffers(kind, len(ends) - 1, [bits, pa.py_buffer(ends), pa.py_buffer(data)], nulls)
