"""Descriptions of container images, read as far as a machine without a container daemon can check them."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

INSTRUCTIONS = {
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "RUN",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
}


class Instruction(NamedTuple):
    word: str
    rest: str


def instructions_of(text: str) -> list[Instruction]:
    """The instructions in order, continued lines joined, comments left out.

    Raises:
        ValueError: an instruction is unknown, or has nothing behind it.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = []
    for line in joined.splitlines():
        if not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        if word not in INSTRUCTIONS or not rest.strip():
            raise ValueError(f"no instruction of a container file: {line!r}")
        found.append(Instruction(word, rest.strip()))
    return found


def commands_of(instructions: list[Instruction]) -> list[str]:
    """What the shell runs while an image is built."""
    return [rest for word, rest in instructions if word == "RUN"]


def copied_of(instructions: list[Instruction]) -> list[str]:
    """Paths and patterns, relative to the directory of the build, that are copied into an image."""
    return [
        path
        for word, rest in instructions
        if word == "COPY" and not rest.startswith("--from=")
        for path in rest.split()[:-1]
    ]


def words_of(rest: str) -> list[str]:
    """The words of an entry point in the form of a JSON list."""
    words: list[str] = json.loads(rest)
    return words
