"""Tests of the demo's terminal output: no number before it is known, one line per topic, next steps."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli import demo as command
from penstock.cli import main
from penstock.demo import run
from penstock.demo.replay import DemoTopics
from penstock.demo.screen import FIRST_BATCH, NOTHING_LEFT, PREPARING, Screen
from penstock.spark.sinks.progress import Progress
from penstock.tables import progress
from penstock.testing import KafkaBroker


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, highlight=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_before_the_first_record_the_bar_of_the_replay_says_what_is_going_on() -> None:
    console = terminal()
    with Screen(console).replay("flights", 1000) as bar:
        bar.start_at(0)
        assert PREPARING in text_of(console)
        assert "0 of 1,000" not in text_of(console)
        bar.advance(400)
        bar.advance(600)
    assert "1,000 of 1,000 records" in text_of(console)


def test_a_replay_that_goes_on_begins_where_the_earlier_one_stopped() -> None:
    console = terminal()
    with Screen(console).replay("flights", 1000) as bar:
        bar.start_at(400)
    assert "400 of 1,000 records" in text_of(console)


def test_before_its_first_batch_the_bar_of_a_query_says_what_is_going_on() -> None:
    console = terminal()
    with Screen(console).stream({"delays": 1000}) as show:
        pass
    assert FIRST_BATCH in text_of(console)
    assert "0 of 1,000" not in text_of(console)
    console = terminal()
    with Screen(console).stream({"delays": 1000}) as show:
        show("delays", Progress(0, 400, 50.0, 8000, 600, None))
    assert "400 of 1,000 rows, 50/s, lag 600" in text_of(console)
    assert NOTHING_LEFT not in text_of(console)


def test_a_query_that_had_nothing_left_to_read_says_so() -> None:
    console = terminal()
    with Screen(console).stream({"delays": 1000}):
        pass
    assert NOTHING_LEFT in text_of(console)


def test_only_the_screen_shows_how_far_the_replay_is(
    kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(progress.SWITCH, "1")
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0.0)
    names = {short: short for short in ("flights", "weather", "delays", "dead-letters", "replay-marks")}
    topics = DemoTopics(kafka_broker.bootstrap_servers, names)
    topics.create()
    topics.write_mark(datetime(2014, 1, 1, tzinfo=UTC))
    assert topics.count("replay-marks") == 1
    assert capsys.readouterr().err == ""


def test_an_interrupted_demo_says_that_it_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupt(options: run.DemoOptions) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_demo", interrupt)
    monkeypatch.setattr(command, "end_children", lambda: None)
    command.end_interrupted.cache_clear()
    assert main(["demo", "--output", str(tmp_path / "demo")]) == 130
    assert "the same command again goes on where this run stopped" in capfd.readouterr().out
