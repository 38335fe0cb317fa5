"""Tests of the transaction state table, with every event in every state."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.broker.transactions.states import (
    NUMBERS,
    PREPARED,
    STORED,
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
    next_state,
)
from penstock.common.transitions import IllegalTransitionError

TABLE = """
                   INITIALIZE ADD      COMMIT         ABORT         FENCE               MARKED          EXPIRE
Empty              Empty      Ongoing  -              PrepareAbort  -                   -               Dead
Ongoing            -          Ongoing  PrepareCommit  PrepareAbort  PrepareEpochFence   -               -
PrepareCommit      -          -        -              -             -                   CompleteCommit  -
PrepareAbort       -          -        -              -             -                   CompleteAbort   -
CompleteCommit     Empty      Ongoing  -              PrepareAbort  -                   -               Dead
CompleteAbort      Empty      Ongoing  -              PrepareAbort  -                   -               Dead
Dead               -          -        -              -             -                   -               -
PrepareEpochFence  -          -        -              PrepareAbort  -                   -               -
"""


def rows() -> list[tuple[TransactionState, TransactionEvent, TransactionState | None]]:
    heads, *lines = [line.split() for line in TABLE.strip().splitlines()]
    return [
        (TransactionState(name), TransactionEvent[head], None if cell == "-" else TransactionState(cell))
        for name, *cells in lines
        for head, cell in zip(heads, cells, strict=True)
    ]


@for_each(rows())
def test_every_state_with_every_event(
    state: TransactionState, event: TransactionEvent, expected: TransactionState | None
) -> None:
    if expected is None:
        with pytest.raises(
            IllegalTransitionError,
            match=f"no row .{state.name}, {event.name}.: {event.value}, while {state.value}",
        ):
            next_state(state, event)
    else:
        assert next_state(state, event) is expected


def test_the_table_is_complete() -> None:
    assert len(rows()) == len(TransactionState) * len(TransactionEvent)
    assert sum(expected is not None for _, _, expected in rows()) == len(TRANSITIONS)


def test_numbers_are_those_of_apache_kafka() -> None:
    assert sorted(NUMBERS.values()) == list(range(8))
    assert NUMBERS[TransactionState.PREPARE_EPOCH_FENCE] == 7
    assert {number: state for state, number in NUMBERS.items() if number < 6} == STORED


def test_a_decided_outcome_leads_to_its_own_end_only() -> None:
    for state in PREPARED:
        assert [after for (before, _), after in TRANSITIONS.items() if before is state] == [
            TransactionState(state.value.replace("Prepare", "Complete"))
        ]
