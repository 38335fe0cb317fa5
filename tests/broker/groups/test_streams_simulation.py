"""Tests that simulate streams groups under many seeds, and that the simulation finds deliberate bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker.groups.streams_simulation import StreamsWorld
from penstock.broker.groups.streams import group as groups
from penstock.broker.groups.streams import reconciliation
from penstock.broker.groups.streams.assignor import assign
from penstock.broker.groups.streams.coordinator import StreamsGroupCoordinator
from penstock.broker.groups.streams.group import StreamsGroup
from penstock.broker.groups.streams.state import Epoch, SetCurrent, StreamsState


@pytest.mark.parametrize("seed", range(6))
def test_a_life(seed: int) -> None:
    StreamsWorld(seed).run()


def test_one_seed_is_one_life() -> None:
    first, second = StreamsWorld(3), StreamsWorld(3)
    first.run()
    second.run()
    assert first.log == second.log


@pytest.mark.soak
def test_many_lives() -> None:
    for seed in range(1000, 1600):
        StreamsWorld(seed).run()


def _revokes_nothing(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: members get their new epoch and tasks at once, before they have revoked any."""
    patch.setattr(reconciliation, "_has_any", lambda *what: False)


def _keeps_replaced_members(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: a static member that returns does not remove its previous member id."""
    patch.setattr(groups, "_removed", lambda member_id: ())


def _takes_held_tasks(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: tasks that other members still own are assigned again."""
    patch.setattr(StreamsState, "is_held_elsewhere", lambda *what, **more: False)


def _shares_processes(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: the assignor treats each member as a process of its own."""
    patch.setattr(StreamsState, "process_of", lambda self, member_id: member_id)


def _forgets_epochs(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: a member that leaves resets the group to its first epoch."""
    remove = StreamsGroup.remove

    def back(self: StreamsGroup, *what: Any) -> Any:
        draft = remove(self, *what)
        draft.state.group = Epoch()
        return draft

    patch.setattr(StreamsGroup, "remove", back)


def _loses_tasks(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: the assignor leaves out one task of each subtopology."""

    def lossy(members: Any, tasks: Any, *what: Any) -> Any:
        return assign(members, {name: max(1, count - 1) for name, count in tasks.items()}, *what)

    patch.setattr(groups, "assign", lossy)


def _leaves_remains(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: a member that has left keeps its tasks."""
    apply = StreamsState.apply

    def keeps(self: StreamsState, change: Any) -> None:
        if not (isinstance(change, SetCurrent) and change.value is None):
            apply(self, change)

    patch.setattr(StreamsState, "apply", keeps)


def _never_ends_sessions(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: members whose session has expired are never removed."""
    patch.setattr(StreamsGroupCoordinator, "_fence", lambda *what: None)


def _has_no_standbys(patch: pytest.MonkeyPatch) -> None:
    """Patch in a bug: the assignor assigns no standby tasks."""
    patch.setattr(groups, "assign", lambda members, tasks, stateful, standbys: assign(members, tasks, (), 0))


@pytest.mark.parametrize(
    "break_it",
    [
        _revokes_nothing,
        _keeps_replaced_members,
        _takes_held_tasks,
        _shares_processes,
        _forgets_epochs,
        _loses_tasks,
        _leaves_remains,
        _never_ends_sessions,
        _has_no_standbys,
    ],
)
def test_what_is_broken_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def live() -> None:
        for seed in range(20):
            StreamsWorld(seed).run()

    break_it(monkeypatch)
    with pytest.raises(AssertionError, match=r"seed \d+"):
        live()
