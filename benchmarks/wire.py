"""Measure the lines per second of the command `penstock wire --jsonl`, including its start-up.

One input has small requests of one kind, as a program would convert one after the other. Another has every
message and version once, which shows the cost of compiling all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import Contestant, measure, report
from penstock.errors import EncodeError
from penstock.explorer.lines import encode_line
from penstock.protocol import messages
from penstock.protocol.inspect.json_form import to_json
from penstock.protocol.message import Message
from penstock.protocol.message_index import HOMES
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

LINES = 20_000
ROUNDS = int(os.environ.get("ROUNDS", "3"))


def line(message: Message, version: int) -> str:
    """Return an input line with a message in JSON form; it is valid input for `encode`.

    `decode` also accepts the line after `encode` has added its output.
    """
    return encode_line(
        json.dumps({"name": message.NAME, "version": version, "json": to_json(message, version)})
    )


def small_requests() -> list[str]:
    return [
        line(MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{number}")]), 12)
        for number in range(LINES)
    ]


def everything_once() -> list[str]:
    lines = []
    for name in HOMES:
        message_class: type[Message] = getattr(messages, name)
        for version in range(message_class.VERSIONS[0], message_class.VERSIONS[1] + 1):
            try:
                lines.append(line(message_class(), version))
            except EncodeError:  # a struct without a default that may not be null
                continue
    return lines


def command(direction: str, lines: list[str]) -> Contestant:
    words = [str(Path(sys.executable).with_name("penstock")), "wire", direction, "--jsonl"]
    data = "".join(f"{each}\n" for each in lines).encode()

    def run() -> None:
        done = subprocess.run(words, input=data, capture_output=True, check=True)
        assert done.stdout.count(b"\n") == len(lines)
        assert b'"error":' not in done.stdout

    return Contestant(direction, run, units=len(lines))


def main() -> None:
    for title, lines in (
        ("small requests", small_requests()),
        ("every message and version", everything_once()),
    ):
        contestants = [command(direction, lines) for direction in ("encode", "decode")]
        measure(contestants, ROUNDS)
        report(f"penstock wire --jsonl, {len(lines):,} lines: {title}", contestants, unit="lines")


if __name__ == "__main__":
    main()
