"""Compile the record kernels where numba is installed, and run them as they are where it is not.

A kernel is a plain function of arrays and integers. numba compiles it on first use and keeps the
machine code on disk, beside the package or in the user's cache directory, so that a machine compiles
once. ``PENSTOCK_NO_JIT=1`` turns compilation off: the same functions run, slower, with the same
results.

A few primitives have a compiled twin that does what numba's own operations on arrays cannot: an index
that is never negative, a copy that is one memcpy, sums that wrap as 64-bit numbers do. What matters
more: small functions that touch an array through them alone are inlined without counting references,
which would cost more than all their work. The same small function with an `array[index]` or a
`len(array)` between branches takes ten times as long.
"""

from __future__ import annotations

import gc
import hashlib
import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.common.logs import logger_named

if TYPE_CHECKING:
    from collections.abc import Callable

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]

_Function = TypeVar("_Function", bound="Callable[..., Any]")

_log = logger_named("penstock.records")


def _numba() -> Any:
    """Return the numba module, or None where kernels run uncompiled."""
    if os.environ.get("PENSTOCK_NO_JIT", "0") not in ("", "0"):
        return None
    # It makes objects that stay: to look for garbage among them meanwhile is a sixth of what loading takes.
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        import numba
    except ImportError:
        return None
    finally:
        if is_collecting:
            gc.enable()
    return numba


numba = _numba()
COMPILED = numba is not None
"""Whether kernels are compiled."""


def kernel(function: _Function) -> _Function:
    """Compile `function` on first use, without the interpreter's lock and without bounds checks."""
    if numba is None:
        return function
    options = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package nor a home directory can be written: compile per process
        compiled = numba.njit(**options)(function)
    else:
        _stamp(compiled, function)
    return compiled  # type: ignore[no-any-return]


def _stamp(compiled: Any, function: Callable[..., Any]) -> None:
    """Have the machine code on disk count for these sources only.

    numba looks at the function's own file, but the code holds what was inlined from others, too: after
    an upgrade it would go on doing what they did before.
    """
    own = os.path.dirname(function.__code__.co_filename)
    folders = {own, os.path.dirname(__file__)}
    for called in function.__globals__.values():
        folders |= getattr(called, "source_folders", set())
    compiled.source_folders = folders
    file = compiled._cache._cache_file
    file._source_stamp = (file._source_stamp, [_digest(folder) for folder in sorted(folders)])


@lru_cache
def _digest(folder: str) -> str:
    """The contents of the modules of a folder that affect kernels."""
    digest = hashlib.sha256()
    with suppress(OSError):  # the folder may be inside of an archive
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
                if b"kernel" in text or b"intrinsic" in text:
                    digest.update(text)
    return digest.hexdigest()


if numba is None:

    def byte_at(data: Bytes, position: int) -> int:
        """Return the byte at a position that the caller has checked."""
        return int(data[position])

    def put_byte(target: Bytes, position: int, value: int) -> None:
        """Write one byte at a position that the caller has checked."""
        target[position] = value

    def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, size: int) -> None:
        """Copy `size` bytes between two arrays. The caller has checked both ends."""
        target[to : to + size] = source[start : start + size]

    def wrap64(number: int) -> int:
        """Return `number` as a signed number of 64 bits holds it."""
        return (number + (1 << 63)) % (1 << 64) - (1 << 63)

else:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import cgutils, event, types
    from numba.extending import intrinsic

    def _address(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
        return builder.gep(context.make_array(kind)(context, builder, array).data, [position])

    @intrinsic
    def byte_at(typing_context: Any, data: Any, position: Any) -> Any:
        """Load one byte. An ordinary index would also be tested for being negative."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = _address(context, builder, signature.args[0], *arguments)
            return builder.zext(builder.load(address), ir.IntType(64))

        return types.int64(data, types.int64), generate

    @intrinsic
    def put_byte(typing_context: Any, target: Any, position: Any, value: Any) -> Any:
        """Store one byte, likewise."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, at, number = arguments
            address = _address(context, builder, signature.args[0], array, at)
            builder.store(builder.trunc(number, ir.IntType(8)), address)
            return context.get_dummy_value()

        return types.void(target, types.int64, types.int64), generate

    @intrinsic
    def copy_bytes(typing_context: Any, target: Any, to: Any, source: Any, start: Any, size: Any) -> Any:
        """One memcpy. Slices of arrays would build two array descriptors for every record."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_to, at, array_from, begin, count = arguments
            destination = _address(context, builder, signature.args[0], array_to, at)
            origin = _address(context, builder, signature.args[2], array_from, begin)
            raw_memcpy: Any = cgutils.raw_memcpy
            raw_memcpy(builder, destination, origin, count, 1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64), generate

    @kernel
    def wrap64(number: int) -> int:
        """Compiled integers wrap by themselves."""
        return number

    class _Notice(event.Listener):
        """Log once why the first decode on a fresh machine takes long."""

        def __init__(self) -> None:
            self._said = False

        def on_start(self, happening: Any) -> None:
            compiling = happening.data.get("dispatcher")
            if not self._said and getattr(compiling, "__module__", "").startswith("penstock."):
                self._said = True
                _log.info(
                    "compiling the record kernels for this machine; this happens once and takes seconds"
                )

        def on_end(self, happening: Any) -> None:
            pass

    _register: Any = event.register
    _register("numba:compile", _Notice())
