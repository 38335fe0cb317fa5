"""The Node program in docs/how-to/testing.md that starts a broker for a test runs as printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.compat

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "testing.md"
PROGRAM = re.search(r"^Node:\n\n```text\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_node_reads_where_the_broker_is_and_ends_it() -> None:
    node = shutil.which("node")
    assert node is not None, "install Node, as .ci/run does"
    assert PROGRAM is not None
    said = PROGRAM[1].replace("  broker.kill();", "  console.log(bootstrap_servers);\n  broker.kill();")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [node, "-e", said],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", done.stdout)
    assert done.stderr == ""
