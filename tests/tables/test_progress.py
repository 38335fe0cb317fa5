"""Tests of the progress line of a call: when it appears, its text, and that it disappears."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock import read_topic, scan_topic, write_topic
from penstock.tables import progress
from penstock.tables.progress import ProgressLine, is_wanted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace stderr with a fake terminal on which every step is shown at once."""
    shown = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown, modules=sys.modules))
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)
    monkeypatch.delenv(progress.SWITCH, raising=False)
    return shown


def test_a_line_has_part_count_rate_and_time() -> None:
    shown = ProgressLine("orders", "records", 1_000, False)
    shown._done, shown._bytes = 250, 5_000_000
    assert shown.line(10.0) == "orders ██████░░░░░░░░░░░░░░░░░░  25%  250 records, 0 MB/s, 0:30 left"
    shown.total = None
    assert shown.line(3_700.0) == "orders: 250 records, 0 MB/s, 1:01:40"
    shown.total, shown._done = 100, 250
    assert " 100% " in shown.line(1.0), "never beyond the end"


def test_it_is_shown_on_terminals_and_gone_at_the_end(terminal: Terminal) -> None:
    with ProgressLine("orders", "rows", 2) as shown:
        shown.add(1, 10)
        assert "orders ████████████░░░░░░░░░░░░  50%  1 rows" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
    assert terminal.getvalue().rsplit("\r", 2)[1].strip() == ""


def test_where_it_is_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_wanted(None)
    assert not is_wanted(False)
    monkeypatch.setenv(progress.SWITCH, "0")
    assert not is_wanted(None)
    monkeypatch.delenv(progress.SWITCH)
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    assert not is_wanted(None)
    assert is_wanted(True)
    monkeypatch.setenv(progress.SWITCH, "1")
    assert is_wanted(None)
    monkeypatch.delenv(progress.SWITCH)
    monkeypatch.setattr(progress.sys, "stderr", None)
    assert not is_wanted(None)


def test_what_is_fast_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 60.0)
    with ProgressLine("orders", "rows", 2) as shown:
        shown.add(1, 10)
    assert terminal.getvalue() == ""


def test_a_terminal_that_goes_away_harms_nothing(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    with ProgressLine("orders", "rows", 2) as shown:
        terminal.close()
        shown.add(1, 10)
        shown.add(1, 10)


class Notebook:
    """A stand-in for IPython in a notebook cell, with the present contents of each output."""

    class ZMQInteractiveShell:
        """A class with the name by which a notebook is recognized."""

    class Handle:
        def __init__(self, outputs: list[list[str]]) -> None:
            self.history: list[str] = []
            outputs.append(self.history)

        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            self.history.append(data["text/plain"])

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.outputs: list[list[str]] = []
        shell = SimpleNamespace(get_ipython=Notebook.ZMQInteractiveShell)
        monkeypatch.setitem(sys.modules, "IPython", shell)
        monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=self.display))

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Notebook.Handle:
        assert display_id
        handle = Notebook.Handle(self.outputs)
        handle.update(data, raw)
        return handle


def test_in_a_notebook_it_is_one_output_that_says_at_the_end_what_was_done(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(monkeypatch)
    with ProgressLine("orders", "rows", 2) as shown:
        shown.add(1, 10)
        shown.add(1, 10)
    (output,) = notebook.outputs
    assert [line.partition("  1 rows")[0].partition("  2 rows")[0] for line in output[:2]] == [
        "orders ████████████░░░░░░░░░░░░  50%",
        "orders ████████████████████████ 100%",
    ]
    (last,) = output[2:]
    assert re.fullmatch(r"orders: 2 rows in \d+:\d\d, [\d,]+ MB/s", last)
    assert terminal.getvalue() == ""


def test_a_notebook_that_cannot_show_it_harms_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(monkeypatch)
    monkeypatch.setattr(notebook, "outputs", None)
    with ProgressLine("orders", "rows", 2) as shown:
        shown.add(1, 10)
        shown.add(1, 10)
    assert terminal.getvalue() == ""


def test_calls_show_it(servers: str, new_topic: Callable[..., str], terminal: Terminal) -> None:
    topic = new_topic()
    write_topic(pa.table({"value": ["x"] * 1_000}), topic, servers)
    assert f"{topic} ████████████████████████ 100%  1,000 rows" in terminal.getvalue()
    for call in (
        lambda: read_topic(topic, servers),
        lambda: pa.table(scan_topic(topic, servers)),
        lambda: list(scan_topic(topic, servers, progress=True)),
    ):
        terminal.truncate(0)
        call()
        assert "1,000 records" in terminal.getvalue()
    terminal.truncate(0)
    list(scan_topic(topic, servers))
    read_topic(topic, servers, progress=False)
    assert terminal.getvalue() == ""
