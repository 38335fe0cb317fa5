"""Defaults of scalar fields: from the text in a definition to a Python value."""

from __future__ import annotations

import math
from types import NoneType

from penstock.protocol.schema.definition import INTEGER_BITS
from penstock.protocol.uuid import ZERO_UUID, uuid_from_text


def scalar_default(base: str, source: object) -> object:
    """The default of a field of type `base`. `source` is the text in the definition; None where there is
    none.

    Raises:
        ValueError, OverflowError: it is no value of this type.
    """
    if base == "bool":
        if source is not None and not isinstance(source, bool) and source not in ("true", "false"):
            raise ValueError("write true or false")
        return source is True or source == "true"
    if not isinstance(source, (str, int, float, NoneType)):
        raise ValueError("write a number or a text")
    if base == "float64":
        number = float(source or 0)
        if not math.isfinite(number):
            raise ValueError("not finite")
        return number
    if base == "uuid":
        return uuid_from_text(str(source)) if source else ZERO_UUID
    if base == "string":
        text = str(source or "")
        text.encode()  # what has no UTF-8 is a ValueError
        return text
    if isinstance(source, (bool, float)):
        raise ValueError("not a whole number")
    whole = int(source, 0) if isinstance(source, str) else int(source or 0)
    bits = INTEGER_BITS[base]
    lowest, highest = (0, 2**bits - 1) if base.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not lowest <= whole <= highest:
        raise ValueError(f"out of range {lowest} … {highest}")
    return whole
