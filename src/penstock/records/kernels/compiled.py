"""Chooses the compiled version of each kernel, or the Python function if there is none.

A kernel is a plain function of arrays and integers. `tools/generate_kernels.py` translates all of them to C;
the build of the package compiles this C code to the module `penstock._kernels` if it finds a C compiler.
Without the module, or with ``PENSTOCK_PURE_PYTHON=1``, the Python functions run: slower, with the same
results, which the tests compare.

The small functions in this module are the memory accesses of kernels. Every caller has checked its positions.
Compiled code checks them only if it was compiled with ``CHECK_BOUNDS``, for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.records.native import LIBRARY

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_Array = TypeVar("_Array", bound="NDArray[Any]")

_UNSIGNED = (1 << 64) - 1

KERNELS: list[Callable[..., Any]] = []
"""The Python functions of all kernels, in the order of the imports."""


COMPILED = LIBRARY is not None
"""True if kernels are compiled, False if they run as Python functions."""


def library_name(function: Callable[..., Any]) -> str:
    """Return the name under which the compiled module has the kernel `function`."""
    home = function.__module__.removeprefix("penstock.").replace(".", "_")
    return f"{home}__{function.__name__}"


def kernel(function: _Function) -> _Function:
    """Decorate a kernel: return its compiled version, which runs without the GIL, or `function` itself."""
    KERNELS.append(function)
    twin: _Function = getattr(LIBRARY, library_name(function), function)
    return twin


def pointer(array: _Array) -> _Array:
    """Return a flat (one-dimensional) view of an array."""
    return array.reshape(-1)  # type: ignore[return-value]


def byte_at(data: Bytes, position: int) -> int:
    """Return the byte at `position` of an array."""
    return int(data[position])


def int_at(numbers: Int32s, index: int) -> int:
    """Return the 32-bit number at `index` of an array."""
    return int(numbers[index])


def word_at(data: Bytes, position: int) -> int:
    """Return the eight bytes at `position` of an array as one signed little-endian number."""
    return int.from_bytes(data[position : position + 8].tobytes(), "little", signed=True)


def first_marked(marks: int) -> int:
    """Return the index (0-7) of the first byte in a word with a set top bit; such a byte must exist."""
    return ((marks & -marks).bit_length() - 1) >> 3


def put_byte(target: Bytes, position: int, value: int) -> None:
    """Store `value` as the byte at `position` of an array."""
    target[position] = value


def put_int(numbers: Int32s, index: int, value: int) -> None:
    """Store `value` as the 32-bit number at `index` of an array."""
    numbers[index] = value


def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, size: int) -> None:
    """Copy `size` bytes from one array to another; the two ranges do not overlap."""
    target[to : to + size] = source[start : start + size]


def copy_word(target: Bytes, to: int, source: Bytes, start: int) -> None:
    """Copy eight bytes from one array to another."""
    target[to : to + 8] = source[start : start + 8]


def copy_sixteen(target: Bytes, to: int, source: Bytes, start: int) -> None:
    """Copy sixteen bytes from one array to another."""
    target[to : to + 16] = source[start : start + 16]


def high_product(one: int, other: int) -> int:
    """Return the upper 64 bits of the product of two unsigned 64-bit numbers."""
    return wrap64(((int(one) & _UNSIGNED) * (int(other) & _UNSIGNED)) >> 64)


def leading_zeros(number: int) -> int:
    """Return the number of leading zero bits of a 64-bit number that is not 0."""
    return 64 - (number & _UNSIGNED).bit_length()


def double_bits(number: int, size: int) -> int:
    """Return the bits of `number` as a float of `size` bytes: eight or four."""
    if size == 8:
        return int(np.array([number], dtype=np.int64).astype(np.float64).view(np.int64)[0])
    return int(np.array([number], dtype=np.int64).astype(np.float32).view(np.uint32)[0])


def widened(bits: int) -> int:
    """Convert the bits of a 32-bit float to the bits of the equal 64-bit float."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return int(np.array([bits], dtype=np.uint32).view(np.float32).astype(np.float64).view(np.int64)[0])


def bytes_of(arrays: Sequence[Bytes], index: int) -> Bytes:
    """Return the byte array that is at `index` in `arrays`."""
    return arrays[index]


def ints_of(arrays: Sequence[Int32s], index: int) -> Int32s:
    """Return the array of 32-bit numbers that is at `index` in `arrays`."""
    return arrays[index]


def wrap64(number: int) -> int:
    """Return `number`, a Python or numpy integer, wrapped to a signed 64-bit number."""
    return (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)
