"""Pyright accepts and rejects the same uses of Penstock's public API as mypy.

`make lint` runs mypy on the same files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TYPED = Path(__file__).resolve().parents[1] / "typed"


@pytest.mark.compat
def test_pyright_accepts_what_is_right_and_refuses_what_is_wrong() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "-p", str(TYPED / "pyrightconfig.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["generalDiagnostics"] == []
    assert found["summary"]["filesAnalyzed"] == 2
