"""The demo's directory: the paths of its files, the arguments of the run, and a lock.

The arguments are stored before anything else happens. A start with the same arguments resumes the run; other
arguments are refused, since the directory would then mix the results of two runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from penstock.common.atomic_files import make_directory, storage_error, write_whole_text
from penstock.common.operating_system import try_lock
from penstock.errors import ConfigError

FORMAT = 1


class Intent(NamedTuple):
    """The arguments that determine the content of topics and table. Equal arguments resume an earlier run.

    `bootstrap_server` is None for the demo's own broker. `days` of the year 2013 are replayed.
    """

    days: int
    bootstrap_server: str | None
    topic_prefix: str

    def topic(self, name: str) -> str:
        """Return the full name of a topic of the demo: the prefix `topic_prefix` and its short name."""
        return f"{self.topic_prefix}{name}"


class Output:
    """The paths of all files in the demo's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.intent_file = directory / "demo.json"
        self.lock_file = directory / ".lock"
        self.broker_directory = directory / "broker"
        self.broker_log = directory / "broker.log"
        self.broker_file = directory / "broker.json"
        self.checkpoints = directory / "checkpoints"
        self.triage = directory / "triage"
        self.delays = directory / "delays"
        self.accounts = directory / "accounts.json"
        self.picture = directory / "year.png"
        self.spark_log = directory / "spark.log"

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Create the directory, and lock it against other demos while the block runs.

        Raises:
            ConfigError: another demo is running in the directory.
            StorageError: the directory cannot be written.
        """
        make_directory(self.directory)
        try:
            handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise storage_error(self.directory, error) from error
        try:
            _lock(handle, self.directory)
            yield
        finally:
            os.close(handle)

    def intent(self) -> Intent | None:
        """Return the arguments of an earlier run in this directory, or None if there was none.

        Raises:
            ConfigError: the directory has other files.
        """
        if not self.intent_file.exists():
            others = [path.name for path in self.directory.iterdir() if path != self.lock_file]
            if others:
                raise ConfigError(
                    f"{self.directory} holds {others[0]!r} and no demo; choose another --output"
                )
            return None
        try:
            document = json.loads(self.intent_file.read_bytes())
            if document.pop("format") != FORMAT:
                raise ValueError("written by another version")
            return Intent(**document)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{self.intent_file} cannot be understood ({error}); delete {self.directory} to start over"
            ) from None

    def remember(self, intent: Intent) -> None:
        """Store the arguments of this run in the file `intent_file`. Call it before any other change."""
        write_json(self.intent_file, {"format": FORMAT, **intent._asdict()})


def _lock(handle: int, directory: Path) -> None:
    """Lock the file with descriptor `handle` until that is closed; raise ConfigError if it is locked."""
    if not try_lock(handle, for_process=False):
        raise ConfigError(f"another demo is running in {directory}; wait for it, or choose another --output")


def refuse_other_intent(output: Output, before: Intent, now: Intent) -> None:
    """Raise ConfigError if `now`, this run's arguments, differ from `before`, those of the earlier run."""
    flags = {"days": "--limit", "bootstrap_server": "--bootstrap-server", "topic_prefix": "--topic-prefix"}
    for name, flag in flags.items():
        was, wanted = getattr(before, name), getattr(now, name)
        if was != wanted:
            raise ConfigError(
                f"{output.directory} was filled with {flag} {_shown(was)}, not {_shown(wanted)}: "
                "give the same arguments, choose another --output, or delete the directory"
            )


def write_json(path: Path, document: object) -> None:
    """Write `document` atomically: the file is complete or does not exist."""
    write_whole_text(path, json.dumps(document, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`."""
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def _shown(value: object) -> str:
    return "(none)" if value in (None, "") else str(value)
