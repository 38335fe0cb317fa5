"""Names of Kafka 0.7's directories and segment files, for programs that read them without a broker."""

from __future__ import annotations

import os

SUFFIX = ".kafka"
NAME_DIGITS = 20


def segment_name(start: int) -> str:
    """Return the name of the segment file that begins at byte `start`."""
    return f"{start:0{NAME_DIGITS}d}{SUFFIX}"


def segment_start(name: str) -> int | None:
    """Return the first byte offset of the segment with this file name, or None for any other file."""
    digits = name.removesuffix(SUFFIX)
    if len(digits) == NAME_DIGITS and len(name) > NAME_DIGITS and digits.isascii() and digits.isdecimal():
        return int(digits)
    return None


def is_log_directory(directory: str) -> bool:
    """Return True if a directory contains segments of Kafka 0.7."""
    try:
        return any(segment_start(name) is not None for name in os.listdir(directory))
    except OSError:
        return False


def partition_of(name: str) -> tuple[str, int] | None:
    """Return the topic and partition in a directory's name, or None for any other name."""
    topic, dash, number = name.rpartition("-")
    if dash and topic and number.isascii() and number.isdecimal():
        return topic, int(number)
    return None


def partition_directories(directory: str) -> list[tuple[str, int]]:
    """Return the topics and partitions that have a directory below `directory`, in order.

    Raises:
        OSError: `directory` cannot be read.
    """
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    return sorted(found for name in names if (found := partition_of(name)) is not None)
