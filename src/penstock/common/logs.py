"""Loggers whose lines no peer can forge: arguments of log calls are made printable.

Every logger of the package comes from `logger_named`, so users' own handlers get safe records, too. What
else reaches a log, such as the text of foreign exceptions below a traceback, is the formatter's part:
`PrintableFormatter` is the one of the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.printable import printable


def logger_named(name: str) -> logging.Logger:
    """Return the logger of that name. The arguments of its records are printable."""
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


TAPPED = logging.INFO - 1
"""The level of the logger "penstock" while lines are tapped; no user sets it."""

taps: list[Callable[[logging.LogRecord], object]] = []
"""Take the records that the program's own levels keep from it. The logger's level is `TAPPED` then."""


class _PrintableArguments(logging.Filter):
    """Replaces those parts of a record whose text is not printable. Keeps every record but those for taps."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.args:
            record.msg = _safe(record.msg)
        elif isinstance(record.args, tuple):
            record.args = tuple(map(_safe, record.args))
        else:
            record.args = {name: _safe(value) for name, value in record.args.items()}
        if not taps or not _is_for_taps(record):
            return True
        for tap in taps:
            tap(record)
        return False


def _is_for_taps(record: logging.LogRecord) -> bool:
    """Return whether a record is logged for the taps alone: the root logger's level would refuse it."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None and logger.level == logging.NOTSET:
        logger = logger.parent
    return logger is not None and logger.level == TAPPED and record.levelno < logging.root.level


def _safe(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return value if str(value).isprintable() else _PrintableText(value)


_PRINTABLE = _PrintableArguments()
