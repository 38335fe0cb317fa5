"""The interactive shell of ``penstock sql``, with history and completion, until Ctrl-D."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.outcome import note, one_line, put, say
from penstock.cli.sql_rows import summary, write_rows
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.queries.progress import QueryProgress
    from penstock.queries.session import SqlSession

SHOWN_LAYOUTS = ("table", "csv", "json")
HISTORY_LINES = 5_000
KEYWORDS = """
all and any as asc between by case cast copy count create cross desc describe distinct else end
exists explain extract false from full group having in inner insert interval into is join
lateral left like limit not now null offset on or order outer partition qualify right select
show sum table tables then time_bucket to true union using values when where window with avg
min max date_trunc
"""
HELP = """Statements end with a semicolon. TAB completes topics, columns and keywords.
  show tables;         the topics
  describe topic;      its columns
  explain select …;    what a query would fetch
  \\f FORMAT            table, csv or json
  \\r                   ask for topics and their fields anew
  \\q                   the end, as Ctrl-D"""


class Shell:
    """Reads SQL statements from the terminal, and prints their rows."""

    def __init__(self, session: SqlSession, cluster: str, layout: str, progress: QueryProgress) -> None:
        self._session = session
        self._cluster = cluster
        self._layout = layout
        self._progress = progress
        self._completer = Completer(session.topic_names, session.columns_of)

    def run(self) -> None:
        """Read and run statements until the end of input."""
        with history(self._completer.complete):
            note(f"topics of {self._cluster} are tables; \\h helps, Ctrl-D ends")
            waiting: list[str] = []
            while True:
                try:
                    line = input("     > " if waiting else "sql  > ")
                except EOFError:
                    put()
                    return
                except KeyboardInterrupt:
                    put()
                    waiting.clear()
                    continue
                if not waiting and line.strip().startswith("\\"):
                    if not self._obeyed(line.strip()):
                        return
                    continue
                waiting.append(line)
                if line.rstrip().endswith(";"):
                    self._answer("\n".join(waiting))
                    waiting.clear()

    def _obeyed(self, line: str) -> bool:
        """Run `line`, a backslash command; return False if the command ends the shell, else True."""
        word, _, rest = line.partition(" ")
        if word in ("\\q", "\\quit"):
            return False
        if word == "\\f" and rest.strip() in SHOWN_LAYOUTS:
            self._layout = rest.strip()
        elif word == "\\r":
            self._session.forget_topics()
        else:
            put(HELP)
        return True

    def _answer(self, text: str) -> None:
        try:
            for statement in self._session.statements(text):
                began = time.monotonic()
                reader = self._session.run(statement)
                rows = write_rows(self._session.batches(reader), reader.schema, self._layout, "-")
                note(summary(self._session.watch, rows, time.monotonic() - began))
        except KeyboardInterrupt:
            note("% ended")
        except (PenstockError, OSError) as error:
            say(one_line(error))


class Completer:
    """Completes words: keywords, topics, and the columns of the topics that a line names."""

    def __init__(self, topics: Callable[[], list[str]], columns: Callable[[str], list[str]]) -> None:
        self._topics = topics
        self._columns = columns
        self._found: list[str] = []

    def complete(self, word: str, number: int) -> str | None:
        """Return completion `number` of a word, as readline requests them, or None after the last."""
        if number == 0:
            self._found = self.words(word, _line())
        return self._found[number] if number < len(self._found) else None

    def words(self, word: str, line: str) -> list[str]:
        """Return all completions of a word in a line."""
        from penstock.queries.session import table_reference

        plain = word.lstrip('"').lower()
        try:
            topics = self._topics()
        except PenstockError:
            topics = []
        found = [table_reference(topic) for topic in topics if topic.lower().startswith(plain)]
        named = set(re.findall(r'"([^"]+)"|(\w+)', line))
        for topic in topics:
            if any(topic in pair for pair in named):
                with contextlib.suppress(PenstockError):
                    found += [
                        f'"{name}"' if name == "offset" else table_reference(name)
                        for name in self._columns(topic)
                        if name.lower().startswith(plain)
                    ]
        found += [
            keyword for keyword in KEYWORDS.split() if keyword.startswith(plain) and not word.startswith('"')
        ]
        return list(dict.fromkeys(found))


def _line() -> str:
    import readline

    return readline.get_line_buffer()


@contextlib.contextmanager
def history(complete: Callable[[str, int], str | None]) -> Iterator[None]:
    """Set up readline with a history file and a completer, if Python has readline."""
    try:
        import readline
    except ImportError:  # Python was built without
        yield
        return
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n(),;=<>+*/")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(HISTORY_LINES)
    path = history_path()
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
            path.chmod(0o600)


def history_path() -> Path:
    """Return the path of the history file, in freedesktop.org's directory for state."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "penstock" / "sql_history"
