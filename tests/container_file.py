"""A parser for container files, for checks that need no container daemon."""

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
    """Return the instructions in order, with continued lines joined and without comments.

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
    """Return the shell commands that run while an image is built."""
    return [rest for word, rest in instructions if word == "RUN"]


def copied_of(instructions: list[Instruction]) -> list[str]:
    """Return the paths and patterns, relative to the build directory, that are copied to an image."""
    return [
        path
        for word, rest in instructions
        if word == "COPY" and not rest.startswith("--from=")
        for path in rest.split()[:-1]
    ]


def words_of(rest: str) -> list[str]:
    """Return the words of an entry point that is given as a JSON list."""
    words: list[str] = json.loads(rest)
    return words
