"""Names of directories and segment files of Kafka 0.7, for those who only look."""

from __future__ import annotations

import os

SUFFIX = ".kafka"
NAME_DIGITS = 20


def segment_name(start: int) -> str:
    """Return the file that begins at byte `start`."""
    return f"{start:0{NAME_DIGITS}d}{SUFFIX}"


def segment_start(name: str) -> int | None:
    """Return the first byte of the segment with this file name; None for any other file."""
    digits = name.removesuffix(SUFFIX)
    if len(digits) == NAME_DIGITS and len(name) > NAME_DIGITS and digits.isascii() and digits.isdecimal():
        return int(digits)
    return None


def is_log_directory(directory: str) -> bool:
    """Return whether segments of Kafka 0.7 are in a directory itself."""
    try:
        return any(segment_start(name) is not None for name in os.listdir(directory))
    except OSError:
        return False


def partition_of(name: str) -> tuple[str, int] | None:
    """Return the topic and partition that a directory is named after; None where it is named otherwise."""
    topic, dash, number = name.rpartition("-")
    if dash and topic and number.isascii() and number.isdecimal():
        return topic, int(number)
    return None


def partition_directories(directory: str) -> list[tuple[str, int]]:
    """Return the topics and partitions that have a directory below `directory`, in order.

    Raises:
        OSError: it cannot be read.
    """
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    return sorted(found for name in names if (found := partition_of(name)) is not None)
