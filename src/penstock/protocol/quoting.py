"""Quotes values and names for generated source, so that no text from a definition is executed as code.

A definition may come from a file of unknown origin. Its defaults and names become parts of Python source
that is executed, so each passes one of these functions: `literal` for values, `identifier` for names.
"""

from __future__ import annotations

import math
from keyword import iskeyword


def literal(value: object) -> str:
    """Return a Python literal that evaluates to `value`.

    Only None and exact instances of bool, int, float, str and bytes are accepted, because the `repr` of
    another type, or of a subclass, may be any text that the class returns. Strings and bytes are in double
    quotes if that needs no escape, as the formatter of generated modules writes them.

    Raises:
        ValueError: the value is of another type, or a float without a literal (nan, inf).
    """
    if value is None or type(value) in (bool, int):
        return repr(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    if type(value) is str:
        # repr chooses double quotes where there is a single quote inside: one is put in front and cut off.
        return repr(value) if '"' in value else '"' + repr("'" + value)[2:]
    if type(value) is bytes:
        return repr(value) if b'"' in value else 'b"' + repr(b"'" + value)[3:]
    raise ValueError(f"a {type(value).__name__} cannot be written into generated source")


def is_identifier(text: object) -> bool:
    """Return True if `text` may be a name in generated source.

    Names are ASCII, because Python treats many Unicode characters as the same name (NFKC); they are no
    keywords; and they do not begin with an underscore, since such names belong to Python and to the
    generated code itself.
    """
    return (
        type(text) is str
        and text.isascii()
        and text.isidentifier()
        and not text.startswith("_")
        and not iskeyword(text)
    )


def identifier(text: str) -> str:
    """Return `text` if it may be a name in generated source.

    Raises:
        ValueError: the text may not be a name in generated source.
    """
    if not is_identifier(text):
        raise ValueError(f"{text!r} cannot be a name in generated source")
    return text
