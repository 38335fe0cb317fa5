"""Tests that run the code blocks of the page about recordings in order, in a directory with a capture."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from testing.replay.shop import capture

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "replay.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python no-run: ([^\n]*)\n(.*?)^```", PAGE, re.M | re.S)


def run(directory: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=directory, capture_output=True, text=True, check=False, timeout=120
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_blocks_run(tmp_path: Path) -> None:
    (tmp_path / "talk.pcap").write_bytes(capture())
    # The page's recording has no values to compare; the last block plays it as the application sent it.
    scripts = [code for info, code in BLOCKS if "a test module" not in info]
    modules = [code for info, code in BLOCKS if "a test module" in info]
    assert (len(scripts), len(modules)) == (3, 1)
    assert run(tmp_path, "-c", scripts[0]) == ""
    assert run(tmp_path, "-c", scripts[1]) == ""
    assert run(tmp_path, "-c", scripts[2]) == ""
    (tmp_path / "test_it.py").write_text(modules[0])
    assert run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", ".") == ""


def test_the_error_that_it_shows_is_the_one_there_is(tmp_path: Path) -> None:
    (tmp_path / "talk.pcap").write_bytes(capture())
    program = BLOCKS[0][1] + BLOCKS[1][1].replace('b"k0"', 'b"other"').partition("    assert")[0]
    shown = re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)[0]
    first, second = shown.splitlines()
    said = run(
        tmp_path,
        "-c",
        program.replace(
            "servers.bootstrap_servers", "servers.bootstrap_servers, config={'client.id': 'shop'}"
        ),
    )
    assert first in said
    assert re.sub(r"v\d+", "v", second.strip()) in re.sub(r"v\d+", "v", said)
