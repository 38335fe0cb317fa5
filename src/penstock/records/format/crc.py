"""The two checksums of Kafka's record formats: CRC-32C and CRC-32.

Batches of magic 2 have a CRC-32C (Castagnoli), messages of magic 0 and 1 a CRC-32 (IEEE, as in zlib).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any
from zlib import crc32 as _crc32

if TYPE_CHECKING:
    from typing_extensions import Buffer


def _load() -> Callable[[Any], int]:
    """Load only the extension module of the library `crc32c`; return its checksum function.

    The library's package reads the metadata of installed distributions and builds a command line when it is
    imported, which takes longer than all other imports of a client.
    """
    package = find_spec("crc32c")
    places = package.submodule_search_locations if package is not None else None
    found = PathFinder.find_spec("_crc32c", places) if places is not None else None
    if found is None or found.loader is None:
        from crc32c import crc32c as whole

        return whole
    module: Any = module_from_spec(found)
    found.loader.exec_module(module)
    function: Callable[[Any], int] = module.crc32c
    return function


crc32c: Callable[[Buffer], int] = _load()
"""Return the CRC-32C of any contiguous buffer, as an unsigned 32-bit number."""


def crc32(data: Buffer) -> int:
    """Return the CRC-32 (IEEE) of `data`, as an unsigned 32-bit number."""
    return _crc32(data)
