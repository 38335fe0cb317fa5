"""Text of others made fit to be read: control characters are spelled out instead of obeyed.

Names of topics, groups and clients, values, and the messages of brokers may hold anything: escape sequences
that steer a terminal, line ends that forge a line of a log, marks that reverse what is displayed. All
text for people passes one of these functions; what goes into a pipe or a file does not.
"""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Return the text with every character that is not printed spelled out as in Python: ``\\x1b``,
    ``\\u202e``.

    These are control characters (line ends and tabs among them), invisible ones such as those that change
    the direction of text, separators other than the space, surrogates, and what Unicode has not assigned.
    `kept` lists characters that stay nevertheless.
    """
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() or each in kept else _escape(each) for each in text])


def printable_bytes(data: bytes, kept: str = "") -> bytes:
    """Spell out control characters of UTF-8 text in bytes.

    Bytes that are no UTF-8 are spelled out as ``\\xff``.
    """
    return printable(data.decode("utf-8", "backslashreplace"), kept).encode()


def _escape(character: str) -> str:
    return repr(character)[1:-1]
