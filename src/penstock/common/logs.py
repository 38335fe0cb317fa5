"""Loggers whose lines no peer can forge: arguments of log calls are made printable.

Every logger of the package comes from `logger_named`, so users' own handlers get safe records, too. What
else reaches a log, such as the text of foreign exceptions below a traceback, is the formatter's part:
`PrintableFormatter` is the one of the command line.
"""

from __future__ import annotations

import logging

from penstock.printable import printable


def logger_named(name: str) -> logging.Logger:
    """The logger of that name. The arguments of its records are printable."""
    logger = logging.getLogger(name)
    if _PRINTABLE not in logger.filters:
        logger.addFilter(_PRINTABLE)
    return logger


class PrintableFormatter(logging.Formatter):
    """One line for each event, and an indented one for each line of a traceback, none of them forged."""

    def format(self, record: logging.LogRecord) -> str:
        first, *more = super().format(record).split("\n")
        return "\n".join([first, *(f"  {printable(line)}" for line in more)])

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name is logging's
        return printable(super().formatMessage(record))


class _PrintableText(str):
    """Printable text in the place of a value; its repr is still the value's."""

    __slots__ = ("_repr",)

    def __new__(cls, value: object) -> _PrintableText:
        made = super().__new__(cls, printable(str(value)))
        made._repr = printable(repr(value))
        return made

    def __repr__(self) -> str:
        return self._repr

    _repr: str


class _PrintableArguments(logging.Filter):
    """Replaces those parts of a record whose text is not printable. Keeps every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.args:
            record.msg = _safe(record.msg)
        elif isinstance(record.args, tuple):
            record.args = tuple(map(_safe, record.args))
        else:
            record.args = {name: _safe(value) for name, value in record.args.items()}
        return True


def _safe(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return value if str(value).isprintable() else _PrintableText(value)


_PRINTABLE = _PrintableArguments()
