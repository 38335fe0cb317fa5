"""Reconciliation: a member's next step to its target assignment; tasks are given up before others get them.

`reconcile` is a pure function. Its rules are those of Apache Kafka 4.4, except that tasks which the member
itself has given up count as free at once.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.groups.streams.state import Current, MemberState
from penstock.broker.groups.streams.tasks import NO_TASKS, Task, Tasks

IsHeld = Callable[[Task, bool], bool]
"""A function that returns True if another member still has a task. Its bool argument is True for an active
task.
"""


def reconcile(
    current: Current, target: Tasks, target_epoch: int, owned: Tasks | None, is_held: IsHeld
) -> Current:
    """Return the next epochs and tasks of a member. `owned` has the tasks that it reports, or is None.

    A member gives up tasks that are not in its target, and stays at its epoch until it confirms this. After
    that, it advances to the epoch of the target, with every task of the target that no other member has.

    A member keeps the state of a task that changes its role: an active task becomes a standby task at once,
    and a standby task stays one until the member gets it as an active task.
    """
    if current.state is MemberState.STABLE and current.epoch == target_epoch:
        return current
    if current.state is MemberState.UNREVOKED and _has_any(owned, current.revoking, current.assigned):
        return current
    keep = current.assigned & target
    promoted = Tasks(standby=current.assigned.standby & target.active)
    revoke = current.assigned - keep - promoted
    wanted = target - keep
    add = Tasks(
        frozenset(task for task in wanted.active if not is_held(task, True)),
        frozenset(task for task in wanted.standby if not is_held(task, False)),
        frozenset(task for task in wanted.warmup if not is_held(task, False)),
    )
    stay = keep | promoted | Tasks(standby=add.standby & current.assigned.active)
    if revoke and _has_any(owned, revoke, stay):
        # A member that has given something up and is to give up more has taken one step towards the target.
        steps = 1 if current.state is MemberState.UNREVOKED else 0
        epochs = {task: current.epochs[task] for task in keep.active | revoke.active}
        return Current(current.epoch + steps, current.epoch, MemberState.UNREVOKED, stay, revoke, epochs)
    epochs = {task: current.epochs[task] for task in keep.active}
    epochs.update(dict.fromkeys(add.active, target_epoch))
    return Current(
        target_epoch,
        current.epoch,
        MemberState.STABLE if add == wanted else MemberState.UNRELEASED,
        keep | add | Tasks(standby=promoted.standby - add.active),
        NO_TASKS,
        epochs,
    )


def _has_any(owned: Tasks | None, tasks: Tasks, stay: Tasks) -> bool:
    """Return True if a member reports any of these tasks as owned, or has not reported its tasks.

    A task that the member reports in another role counts as well, unless the task is in `stay`: the member
    may not have received the change of role.
    """
    return owned is None or bool(owned & tasks or owned.every & tasks.every - stay.every)
