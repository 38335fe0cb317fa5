"""Choose for each kernel its compiled twin, or the function itself where there is none.

A kernel is a plain function of arrays and integers. `tools/generate_kernels.py` translates all of them to C;
the build of the package compiles that as the module `penstock._kernels` where it finds a C compiler. Without
the module, or with ``PENSTOCK_PURE_PYTHON=1``, the functions run as they are, slower, with the same results,
which the tests compare.

The primitives here are what kernels do to memory. Every caller has checked its positions: compiled code does
not look again, unless it was compiled with ``CHECK_BOUNDS`` for the tests.
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
"""Every kernel that was defined, uncompiled, in the order of the imports."""


COMPILED = LIBRARY is not None
"""Whether kernels are compiled."""


def library_name(function: Callable[..., Any]) -> str:
    """Return the name that a kernel has in the compiled module."""
    home = function.__module__.removeprefix("penstock.").replace(".", "_")
    return f"{home}__{function.__name__}"


def kernel(function: _Function) -> _Function:
    """Return the compiled twin of `function`, which runs without the interpreter's lock; else `function`."""
    KERNELS.append(function)
    twin: _Function = getattr(LIBRARY, library_name(function), function)
    return twin


def pointer(array: _Array) -> _Array:
    """Return an array laid flat."""
    return array.reshape(-1)  # type: ignore[return-value]


def byte_at(data: Bytes, position: int) -> int:
    """Return one element of an array."""
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


def put_byte(target: Bytes, position: int, value: int) -> None:
    """Store one byte."""
    target[position] = value


def put_int(numbers: Int32s, index: int, value: int) -> None:
    """Store one 32-bit number."""
    numbers[index] = value


def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, size: int) -> None:
    """Copy `size` bytes between two arrays, which do not overlap there."""
    target[to : to + size] = source[start : start + size]


def copy_word(target: Bytes, to: int, source: Bytes, start: int) -> None:
    """Copy eight bytes."""
    target[to : to + 8] = source[start : start + 8]


def copy_sixteen(target: Bytes, to: int, source: Bytes, start: int) -> None:
    """Copy sixteen bytes."""
    target[to : to + 16] = source[start : start + 16]


def high_product(one: int, other: int) -> int:
    """Return the upper 64 bits of the product of two numbers of 64 bits without a sign."""
    return wrap64(((int(one) & _UNSIGNED) * (int(other) & _UNSIGNED)) >> 64)


def leading_zeros(number: int) -> int:
    """Return how many of 64 bits are zero before the first that is not; one has to be."""
    return 64 - (number & _UNSIGNED).bit_length()


def double_bits(number: int, size: int) -> int:
    """Return the bits of a whole number as a floating-point number of eight or four bytes."""
    if size == 8:
        return int(np.array([number], dtype=np.int64).astype(np.float64).view(np.int64)[0])
    return int(np.array([number], dtype=np.int64).astype(np.float32).view(np.uint32)[0])


def widened(bits: int) -> int:
    """Return the bits of an eight-byte floating-point number that equals one of four bytes, given as bits."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return int(np.array([bits], dtype=np.uint32).view(np.float32).astype(np.float64).view(np.int64)[0])


def bytes_of(arrays: Sequence[Bytes], index: int) -> Bytes:
    """Return one of several arrays of bytes."""
    return arrays[index]


def ints_of(arrays: Sequence[Int32s], index: int) -> Int32s:
    """Return one of several arrays of 32-bit numbers."""
    return arrays[index]


def wrap64(number: int) -> int:
    """Return `number` as a signed number of 64 bits holds it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
