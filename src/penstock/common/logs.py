"""Loggers whose lines no peer can forge: arguments of log calls are made printable.

Every logger of the package comes from `logger_named`, so that handlers of applications get safe records, too.
Other text in a log, such as a traceback with the text of another library's exception, is left to the
formatter: the command line uses `PrintableFormatter`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.printable import printable


def logger_named(name: str) -> logging.Logger:
    """Return the logger of that name. The arguments of its records are made printable."""
    logger = logging.getLogger(name)
    if _PRINTABLE not in logger.filters:
        logger.addFilter(_PRINTABLE)
    return logger


class PrintableFormatter(logging.Formatter):
    """Formats a log record as one line, and each line of its traceback as an indented line.

    Text in a record cannot forge a line of the log.
    """

    def format(self, record: logging.LogRecord) -> str:
        first, *more = super().format(record).split("\n")
        return "\n".join([first, *(f"  {printable(line)}" for line in more)])

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name is logging's
        return printable(super().formatMessage(record))


class _PrintableText(str):
    """A printable text that replaces an argument of a log call; its repr is still the argument's repr."""

    __slots__ = ("_repr",)

    def __new__(cls, value: object) -> _PrintableText:
        made = super().__new__(cls, printable(str(value)))
        made._repr = printable(repr(value))
        return made

    def __repr__(self) -> str:
        return self._repr

    _repr: str


TAPPED = logging.INFO - 1
"""The level of the logger "penstock" while `taps` has functions; users do not set this level."""

taps: list[Callable[[logging.LogRecord], object]] = []
"""Functions that get the log records that the root logger's level drops, such as those that pytest's plugin
keeps for reports. The level of the logger "penstock" is then `TAPPED`."""


class _PrintableArguments(logging.Filter):
    """Replaces the parts of a log record that are not printable.

    A record that only `taps` should get is passed to them, and then dropped.
    """

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
    """Return True if only `taps` should get a record, because the root logger's level would drop it."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None and logger.level == logging.NOTSET:
        logger = logger.parent
    return logger is not None and logger.level == TAPPED and record.levelno < logging.root.level


def _safe(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return value if str(value).isprintable() else _PrintableText(value)


_PRINTABLE = _PrintableArguments()
