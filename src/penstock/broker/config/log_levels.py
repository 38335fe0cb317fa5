"""The levels of the broker's loggers, which admin clients may change.

The names of levels are Apache Kafka's. A level applies to all brokers in the process, until the process ends.
The logger `root` is the parent of all loggers of Penstock; other loggers are not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.broker.config.alterations import DELETE, SET, SettingChange
from penstock.protocol.error_codes import ErrorCode, error_for

ROOT = "root"
_OURS = "penstock"

LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def loggers() -> dict[str, logging.Logger]:
    """Return all loggers of Penstock, as a dict from their names in the Admin API."""
    return {ROOT: logging.getLogger(_OURS)} | {
        name: logger
        for name, logger in sorted(logging.root.manager.loggerDict.items())
        if name.startswith(f"{_OURS}.") and isinstance(logger, logging.Logger)
    }


def level_of(logger: logging.Logger) -> str:
    """Return Apache Kafka's name of the effective level of a logger."""
    level = logger.getEffectiveLevel()
    return next((word for word, number in LEVELS.items() if number >= level), "FATAL")


def check_node(name: str, node_id: int) -> None:
    """Check that a resource's name is the id of this broker.

    Raises:
        KafkaError: INVALID_REQUEST (42): the resource is not this broker.
    """
    if not name.removeprefix("-").isdecimal():
        raise error_for(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name != str(node_id):
        raise error_for(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}"
        )


def change_levels(changes: Sequence[SettingChange], *, validate_only: bool) -> None:
    """Set levels of loggers, or let them inherit the level of the parent logger.

    Raises:
        KafkaError: INVALID_CONFIG (40) or INVALID_REQUEST (42), as it applies. If it raises, no level has
        changed.
    """
    known = loggers()
    levels = []
    for name, operation, value in changes:
        if operation not in (SET, DELETE):
            raise error_for(
                ErrorCode.INVALID_REQUEST, "levels of loggers can be set and deleted, and nothing else"
            )
        if name not in known:
            raise error_for(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation == DELETE and name == ROOT:
            raise error_for(
                ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
            )
        if operation == SET and value not in LEVELS:
            raise error_for(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {value} as it is not a supported log level."
                f" Valid log levels are {', '.join(sorted(LEVELS))}",
            )
        levels.append((known[name], LEVELS[value or ""] if operation == SET else logging.NOTSET))
    if not validate_only:
        for logger, level in levels:
            logger.setLevel(level)
