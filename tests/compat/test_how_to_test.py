"""The test modules printed in docs/how-to/testing.md run without changes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat.peers import need_module

need_module("aiokafka")
need_module("confluent_kafka")
need_module("kafka")

pytestmark = pytest.mark.compat

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "testing.md"
MODULES = re.findall(r"^```python no-run: a test module;[^\n]*\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_every_client_has_one() -> None:
    text = "\n".join(MODULES)
    assert len(MODULES) >= 4
    for client in ("confluent_kafka", "aiokafka", "kafka"):
        assert f"from {client} import" in text


@pytest.mark.parametrize("module", MODULES, ids=lambda text: re.findall(r"def (test_\w+)", text)[0])
def test_module(tmp_path: Path, module: str) -> None:
    (tmp_path / "test_it.py").write_text(module)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
