"""Choose the function that finds the keys of a batch: the compiled kernel or plain Python."""

from __future__ import annotations

from collections.abc import Callable

from penstock.records.format.key_scan import RecordSpan, scan_keys

Scanner = Callable[[bytes, int], list[RecordSpan]]
"""A function that takes the consecutive encoded records of a batch and their number, and returns a
`RecordSpan` for each."""


def fast_scanner() -> Scanner:
    """Return the compiled scanner if it was built and numpy is installed, else `scan_keys`.

    Imports numpy.
    """
    try:
        from penstock.records.kernels.compiled import COMPILED
        from penstock.records.kernels.key_kernels import scan_keys as compiled
    except ImportError:
        return scan_keys
    return compiled if COMPILED else scan_keys
