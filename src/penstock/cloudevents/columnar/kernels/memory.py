"""Loads, stores and copies by address, for the kernels of this package.

A compiled function that hands an array to another one counts references, which costs more than
what most of these functions do. So the outermost kernels take arrays, ask for their `pointer`, and
pass that on. Uncompiled, the pointer of an array is the array itself, laid flat. Every caller has
checked its positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.records.kernels.jit import numba

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Ints = NDArray[np.int64]

if numba is None:

    def pointer(array: Any) -> Any:
        """Return what the functions below take in place of the array."""
        return array.reshape(-1)

    def byte_at(data: Bytes, position: int) -> int:
        """Return one byte."""
        return int(data[position])

    def int_at(numbers: Int32s, index: int) -> int:
        """Return one 32-bit number."""
        return int(numbers[index])

    def word_at(data: Bytes, position: int) -> int:
        """Return eight bytes as one signed number, the first byte lowest."""
        return int.from_bytes(data[position : position + 8].tobytes(), "little", signed=True)

    def first_marked(marks: int) -> int:
        """Return the number of the first of eight bytes whose top bit is set; one has to be."""
        return ((marks & -marks).bit_length() - 1) >> 3

    def copy_word(target: Bytes, to: int, source: Bytes, start: int) -> None:
        """Copy eight bytes."""
        target[to : to + 8] = source[start : start + 8]

    def copy_sixteen(target: Bytes, to: int, source: Bytes, start: int) -> None:
        """Copy sixteen bytes."""
        target[to : to + 16] = source[start : start + 16]

    def addresses(arrays: Sequence[Any]) -> Any:
        """What `bytes_of` and `ints_of` find the arrays by, which the caller has to keep alive meanwhile."""
        return arrays

    def bytes_of(arrays: Any, index: int) -> Any:
        """Return the pointer of one of several arrays of bytes."""
        return arrays[index]

    def ints_of(arrays: Any, index: int) -> Any:
        """Return the pointer of one of several arrays of 32-bit numbers."""
        return arrays[index]

    def put_byte(data: Bytes, position: int, byte: int) -> None:
        """Store one byte."""
        data[position] = byte

    def put_int(numbers: Int32s, index: int, value: int) -> None:
        """Store one 32-bit number."""
        numbers[index] = value

    def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, size: int) -> None:
        """Copy `size` bytes. The two do not overlap."""
        target[to : to + size] = source[start : start + size]

else:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    _INT64 = ir.IntType(64)

    @intrinsic
    def pointer(typing_context: Any, array: Any) -> Any:
        """Return the address of the first element."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, arguments[0]).data

        return types.CPointer(array.dtype)(array), generate  # type: ignore[no-untyped-call]

    @intrinsic
    def byte_at(typing_context: Any, data: Any, position: Any) -> Any:
        """Load one byte."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data, position = arguments
            return builder.zext(builder.load(builder.gep(data, [position])), _INT64)

        return types.int64(data, types.int64), generate

    @intrinsic
    def int_at(typing_context: Any, numbers: Any, index: Any) -> Any:
        """Load one signed 32-bit number."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers, index = arguments
            return builder.sext(builder.load(builder.gep(numbers, [index])), _INT64)

        return types.int64(numbers, types.int64), generate

    def _load_word(builder: Any, data: Any, position: Any) -> Any:
        address = builder.bitcast(builder.gep(data, [position]), _INT64.as_pointer())
        return builder.load(address, align=1)

    @intrinsic
    def word_at(typing_context: Any, data: Any, position: Any) -> Any:
        """Load eight bytes as one signed number, the first byte lowest."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _load_word(builder, *arguments)

        return types.int64(data, types.int64), generate

    @intrinsic
    def first_marked(typing_context: Any, marks: Any) -> Any:
        """Return the number of the first of eight bytes whose top bit is set; one has to be."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            zeros = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
            return builder.lshr(zeros, ir.Constant(_INT64, 3))

        return types.int64(types.int64), generate

    @intrinsic
    def copy_word(typing_context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
        """Copy eight bytes."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, to, source, start = arguments
            address = builder.bitcast(builder.gep(target, [to]), _INT64.as_pointer())
            builder.store(_load_word(builder, source, start), address, align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    @intrinsic
    def copy_sixteen(typing_context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
        """Copy sixteen bytes."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, to, source, start = arguments
            sixteen = ir.VectorType(ir.IntType(8), 16).as_pointer()
            found = builder.load(builder.bitcast(builder.gep(source, [start]), sixteen), align=1)
            builder.store(found, builder.bitcast(builder.gep(target, [to]), sixteen), align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    def addresses(arrays: Sequence[Any]) -> Any:
        """What `bytes_of` and `ints_of` find the arrays by, which the caller has to keep alive meanwhile."""
        return np.array([array.ctypes.data for array in arrays], np.int64)

    def _pointer_among(arrays: Any, index: Any, element: Any) -> Any:
        kind = types.CPointer(element)  # type: ignore[no-untyped-call]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, index = arguments
            data = context.make_array(signature.args[0])(context, builder, array).data
            address = builder.load(builder.gep(data, [index]))
            return builder.inttoptr(address, context.get_value_type(kind))

        return kind(arrays, index), generate

    @intrinsic
    def bytes_of(typing_context: Any, arrays: Any, index: Any) -> Any:
        """Return the pointer of one of several arrays of bytes."""
        return _pointer_among(arrays, types.int64, types.uint8)

    @intrinsic
    def ints_of(typing_context: Any, arrays: Any, index: Any) -> Any:
        """Return the pointer of one of several arrays of 32-bit numbers."""
        return _pointer_among(arrays, types.int64, types.int32)

    def _store(bits: int) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, index, value = arguments
            builder.store(builder.trunc(value, ir.IntType(bits)), builder.gep(target, [index]))
            return context.get_dummy_value()

        return generate

    @intrinsic
    def put_byte(typing_context: Any, data: Any, position: Any, byte: Any) -> Any:
        """Store one byte."""
        return types.void(data, types.int64, types.int64), _store(8)

    @intrinsic
    def put_int(typing_context: Any, numbers: Any, index: Any, value: Any) -> Any:
        """Store one 32-bit number."""
        return types.void(numbers, types.int64, types.int64), _store(32)

    @intrinsic
    def copy_bytes(typing_context: Any, target: Any, to: Any, source: Any, start: Any, size: Any) -> Any:
        """One memcpy."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, to, source, start, size = arguments
            destination, origin = builder.gep(target, [to]), builder.gep(source, [start])
            cgutils.raw_memcpy(builder, destination, origin, size, 1)  # type: ignore[no-untyped-call]
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64), generate
