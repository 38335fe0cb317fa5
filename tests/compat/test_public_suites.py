"""Public test suites written for Testcontainers' Kafka, run unchanged and without Docker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compat.peers import need
from compat.suites import SUITES, Suite, run

pytestmark = [pytest.mark.compat, pytest.mark.soak]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("suite", SUITES, ids=lambda each: each.repository.partition("/")[2])
def test_a_public_suite_passes(suite: Suite, tmp_path: Path) -> None:
    need("git")
    if sys.version_info < suite.python:
        pytest.skip(f"it needs Python {suite.python[0]}.{suite.python[1]}")
    passed, printed = run(suite, tmp_path)
    assert passed == suite.passes, printed
