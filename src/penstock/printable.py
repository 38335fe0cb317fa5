"""Safe display of foreign text: control characters are shown as escapes, so that terminals ignore them.

Names of topics, groups and clients, values, and the messages of brokers may hold anything: escape sequences
that steer a terminal, line ends that forge a line of a log, characters that reverse the displayed text. All
text that is displayed passes through one of these functions; output to a pipe or a file does not.
"""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    r"""Return the text with every unprintable character as an escape, such as ``\x1b`` or ``\u202e``.

    These are control characters (including line ends and tabs), invisible characters such as those that
    change the direction of text, separators other than the space, surrogates, and code points that Unicode
    has not assigned. Characters in `kept` stay.
    """
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() or each in kept else _escape(each) for each in text])


def printable_bytes(data: bytes, kept: str = "") -> bytes:
    r"""Decode UTF-8, and return the text with control characters as escapes. Other bytes become ``\xff``."""
    return printable(data.decode("utf-8", "backslashreplace"), kept).encode()


def _escape(character: str) -> str:
    return repr(character)[1:-1]
