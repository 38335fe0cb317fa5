"""Tests of the state table of classic groups: it is complete and sound, and its picture is up to date."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.coordination.timers import NEVER, Timer, Timers
from penstock.broker.groups.classic.states import (
    BYPASSES,
    REFUSALS,
    REJOINS,
    TRANSITIONS,
    Bypass,
    Cause,
    Rejoin,
    RequestKind,
    State,
)
from penstock.common.transitions import IllegalTransitionError

ROOT = Path(__file__).resolve().parents[3]


def test_every_state_can_be_reached_and_every_cause_leads_somewhere() -> None:
    reached, new = {State.EMPTY}, {State.EMPTY}
    while new:
        new = {follower for (state, _), follower in TRANSITIONS.items() if state in new} - reached
        reached |= new
    assert reached == set(State)
    assert {cause for _, cause in TRANSITIONS} == set(Cause)


def test_from_every_state_but_dead_a_group_can_become_empty_and_nothing_leaves_dead() -> None:
    into = {State.EMPTY}
    while True:
        more = {state for (state, _), follower in TRANSITIONS.items() if follower in into} | into
        if more == into:
            break
        into = more
    assert into == set(State) - {State.DEAD}
    assert not any(state is State.DEAD for state, _ in TRANSITIONS)


def test_every_pair_that_the_table_does_not_list_is_a_named_error() -> None:
    """An illegal event raises IllegalTransitionError, which names the state and the event.

    The state does not silently stay as it was.
    """
    for state in State:
        for cause in Cause:
            if (state, cause) in TRANSITIONS:
                assert TRANSITIONS.next_state(state, cause) is TRANSITIONS[state, cause]
            else:
                with pytest.raises(IllegalTransitionError, match=f"no row .{state.name}, {cause.name}."):
                    TRANSITIONS.next_state(state, cause)


def test_every_way_around_the_table_is_written_down() -> None:
    assert set(BYPASSES) == set(Bypass)


def test_a_group_changes_its_state_by_the_tables_only() -> None:
    """In the package `penstock.broker.groups`, only three methods of the group class assign `_state`.

    They are the constructor and two methods that change the state.
    """
    writers = set()
    for path in (ROOT / "src/penstock/broker/groups").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    is_write = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    if is_write and node.attr == "_state":
                        writers.add(f"{path.stem}.{function.name}")
    assert writers == {"group.__init__", "group._go", "group.bypass"}


def test_who_is_refused_is_refused_with_an_error() -> None:
    assert all(code for code in REFUSALS.values())
    assert {ask for ask, _ in REFUSALS} == set(RequestKind)
    assert set(REJOINS) == set(State) - {State.DEAD}
    assert {decision for decisions in REJOINS.values() for decision in decisions} == set(Rejoin)


def test_the_picture_is_that_of_the_table() -> None:
    """Run ``python tools/draw_group_states.py`` to draw the picture anew if this test fails."""
    spec = importlib.util.spec_from_file_location("draw_group_states", ROOT / "tools/draw_group_states.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PICTURE.read_text(encoding="utf-8") == tool.draw()


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 20))), max_size=40))
def test_timers_fire_once_at_their_last_deadline(changes: list[tuple[int, int | None]]) -> None:
    """Random changes of timers fire the same timers at the same times as a model does.

    The model is a dict of deadlines, which is searched at every tick.
    """
    timers, fired, expected = Timers(), [], []
    made = [Timer(lambda now, index=index: fired.append((now, index))) for index in range(5)]  # type: ignore[misc]
    deadlines: dict[int, int] = {}
    for now, (index, delay) in enumerate(changes):
        if delay is None:
            made[index].stop()
            deadlines.pop(index, None)
        else:
            timers.set(made[index], now + delay)
            deadlines[index] = now + delay
        timers.run(now)
        expected.extend((now, one) for one, at in deadlines.items() if at <= now)
        deadlines = {one: at for one, at in deadlines.items() if at > now}
        assert sorted(fired) == sorted(expected)
        assert timers.next_deadline() <= min(deadlines.values(), default=NEVER)


def test_a_deadline_that_is_put_off_costs_one_entry() -> None:
    timers, timer = Timers(), Timer(lambda now: None)
    for when in range(1000):
        timers.set(timer, 10.0 + when)
    assert len(timers) == 1
