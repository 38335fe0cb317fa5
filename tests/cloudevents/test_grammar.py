"""Tests of the syntax of CloudEvents attributes with a table of cases, as single events and as columns."""

from __future__ import annotations

import pytest

from cloudevents_cases import batch_of
from cloudevents_grammar import CASES, EXPECTED, RECORDS
from penstock.cloudevents import Event, from_record
from penstock.cloudevents.columnar import decode_events, located_rows


def test_every_case_is_judged_by_single_events() -> None:
    found = []
    for (name, text, _), record in zip(CASES, RECORDS, strict=True):
        outcome = from_record(*record)
        found.append((name, text, None if isinstance(outcome, Event) else outcome.rule))
    assert found == EXPECTED


@pytest.mark.parametrize("use_kernels", [True, False])
def test_every_case_is_judged_by_columns(use_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located_rows, "USE_KERNELS", use_kernels)
    rules = decode_events(batch_of(RECORDS), columns=["rule"]).column("rule").to_pylist()
    assert [(name, text, rule) for (name, text, _), rule in zip(CASES, rules, strict=True)] == EXPECTED
