"""Tests of each error code's effect on each step of a transaction, compared with the Java producer's."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.client.group.offsets import GroupMetadata
from penstock.client.producer_id import ProducerId
from penstock.client.transactions.states import TRANSITIONS, ProducerEvent, ProducerPhase, next_state
from penstock.client.transactions.steps import AddOffsets, AddPartitions, CommitOffsets, End, Initialize, Step
from penstock.client.transactions.verdicts import Verdict, judge_batch, judge_step
from penstock.errors import TransactionStateError
from penstock.model import TopicPartition

OWNER = ProducerId(1, 0)
STEPS: dict[str, Step] = {
    "Init": Initialize(OWNER),
    "AddPartitions": AddPartitions(OWNER, frozenset([TopicPartition("t", 0)])),
    "AddOffsets": AddOffsets(OWNER, "g"),
    "Offsets": CommitOffsets(OWNER, GroupMetadata("g"), {}, False),
    "commit": End(OWNER, True, False),
    "abort": End(OWNER, False, False),
    "commit2": End(OWNER, True, True),
    "abort2": End(OWNER, False, True),
}
LETTERS = {
    "R": Verdict.RETRY,
    "C": Verdict.FIND,
    "U": Verdict.REFUSED,
    "A": Verdict.ABORT,
    "B": Verdict.ABORT_AND_RAISE,
    "F": Verdict.FATAL,
    "X": Verdict.FENCED,
    ".": None,
}
TABLE = """
code  Init AddPartitions AddOffsets Offsets commit abort commit2 abort2
0     .    .             .          .       .      .     .       .
14    R    R             R          R       R      R     R       R
51    R    R             R          R       R      R     R       R
15    C    C             C          C       C      C     C       C
16    C    C             C          C       C      C     C       C
7     R    R             R          C       R      R     R       R
47    X    X             X          X       X      X     X       X
90    X    X             X          X       X      X     X       X
48    F    F             F          F       F      F     A       F
49    F    F             F          F       F      F     F       F
59    F    B             B          F       B      F     B       F
53    U    F             F          F       F      F     F       F
29    .    A             .          A       .      .     .       .
30    .    .             A          A       .      .     .       .
3     .    R             .          R       .      .     .       .
55    .    A             .          .       .      .     .       .
22    .    .             .          A       .      .     .       .
25    .    .             .          A       .      .     .       .
82    .    .             .          A       .      .     .       .
12    .    .             .          A       .      .     .       .
120   U    A             A          A       A      F     A       F
50    F    A             F          F       F      F     F       F
42    F    A             F          F       F      F     F       F
35    F    A             F          F       F      F     F       F
-1    F    A             F          F       F      F     F       F
999   F    A             F          F       F      F     F       F
"""
ROWS = [line.split() for line in TABLE.split("\n") if line]
CASES = [
    (name, int(row[0]), letter)
    for row in ROWS[1:]
    for name, letter in zip(ROWS[0][1:], row[1:], strict=True)
    if letter != "."
]


@for_each(CASES)
def test_a_code_means_for_a_step_what_the_table_says(name: str, code: int, letter: str) -> None:
    assert judge_step(STEPS[name], code) is LETTERS[letter]


@pytest.mark.parametrize("name", STEPS)
def test_no_error_is_done(name: str) -> None:
    assert judge_step(STEPS[name], 0) is Verdict.DONE


@for_each(
    [
        (None, Verdict.ABORT),
        (7, Verdict.ABORT),
        (10, Verdict.ABORT),
        (29, Verdict.ABORT),
        (45, Verdict.ABORT),
        (47, Verdict.ABORT),
        (48, Verdict.ABORT),
        (120, Verdict.ABORT),
        (35, Verdict.FATAL),
        (49, Verdict.FATAL),
        (53, Verdict.FATAL),
        (90, Verdict.FENCED),
    ]
)
def test_a_batch_that_is_given_up_fails_the_transaction(code: int | None, verdict: Verdict) -> None:
    assert judge_batch(code) is verdict


CALLS = {
    ProducerEvent.INITIALIZE: {ProducerPhase.UNINITIALIZED},
    ProducerEvent.BEGIN: {ProducerPhase.READY},
    ProducerEvent.SEND_OFFSETS: {ProducerPhase.IN_TRANSACTION},
    ProducerEvent.PREPARE: {ProducerPhase.IN_TRANSACTION},
    ProducerEvent.COMMIT: {ProducerPhase.IN_TRANSACTION, ProducerPhase.PREPARED},
    ProducerEvent.ABORT: {
        ProducerPhase.IN_TRANSACTION,
        ProducerPhase.PREPARED,
        ProducerPhase.ABORTABLE_ERROR,
    },
}


@for_each([(state, event) for event in CALLS for state in ProducerPhase])
def test_a_call_fits_some_states_only(state: ProducerPhase, event: ProducerEvent) -> None:
    if state in CALLS[event]:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(TransactionStateError) as caught:
            next_state(state, event)
        assert event.value in str(caught.value)
        assert state.value in str(caught.value)


def test_nothing_leads_out_of_a_fatal_error() -> None:
    assert {after for (state, _), after in TRANSITIONS.items() if state is ProducerPhase.FATAL_ERROR} == {
        ProducerPhase.FATAL_ERROR
    }
    assert {state for (state, event) in TRANSITIONS if event is ProducerEvent.FAILED_FOR_GOOD} == set(
        ProducerPhase
    )
