"""Tests that run every code block of the documentation, top to bottom, with one process per file.

`python` blocks share one namespace; `sh` blocks run under ``bash -euo pipefail`` in the same working
directory, in their order among the other blocks. A block whose fence says `no-run` is not run (installation
commands, unavailable clusters); the fence must give the reason: ```` ```sh no-run: installs ````. Its syntax
is still checked by Python or the shell.

```` ```python file: shop.py ```` is a file that the reader must save, which the test does. ```` ```python
needs: duckdb ```` runs if these modules are installed, as they are for the tests.
"""

from __future__ import annotations

import ast
import fcntl
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from for_each import for_each

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")],
    key=lambda path: path.as_posix(),
)
SLOW = {
    "README.md",
    "docs/tutorial.md",
    "docs/how-to/landing.md",
    "docs/how-to/schemas.md",
    "docs/how-to/spark.md",
}
"""Pages with half a minute of Spark each.

They run with the compatibility tests. `make wheels` runs the README's blocks with an installed wheel, and in
`.ci/run` only `make wheels` does.
"""

PATIENCE_S = 800
"""The longest time for the blocks of a page, in seconds.

On an idle machine a page takes half a minute at most.
"""

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
REMARK = re.compile(r"no-run: \S.*|file: [\w.-]+|needs: \w+(, \w+)*")
LANGUAGES_RUN = {"python", "sh"}
LANGUAGES_SHOWN = {"", "text", "json", "toml", "ini", "mermaid", "sql", "console"}


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """Return (language and remark, code, line number) of every fenced block of a page."""
    text = path.read_text(encoding="utf-8")
    return [(m[1].strip(), m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def script_for(path: Path) -> str:
    """Return a Python program that runs the blocks of a page in order; empty if none is to be run."""
    lines = []
    for info, code, line in blocks(path):
        language, _, remark = info.partition(" ")
        if language not in LANGUAGES_RUN or remark.startswith("no-run"):
            continue
        where = f"{path.name}:{line}"
        if remark.startswith("file: "):
            lines.append(f"pathlib.Path({remark[6:]!r}).write_text({code!r}, encoding='utf-8')")
        elif remark.startswith("needs: ") and not are_installed(remark[7:].split(", ")):
            continue
        elif language == "python":
            lines.append(f"exec(compile({code!r}, {where!r}, 'exec'), namespace)")
        else:
            lines.append(f"shell({code!r}, {where!r})")
    if not lines:
        return ""
    return "\n".join([PRELUDE, *lines])


def are_installed(modules: list[str]) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


PRELUDE = """
import pathlib, subprocess, sys
namespace = {'__name__': '__main__'}
def shell(code, where):
    done = subprocess.run(['bash', '-euo', 'pipefail', '-c', code], stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f'{where}: exit code {done.returncode}')
"""

FORKED_COMMANDS = """
import os, subprocess, sys
command = [sys.executable, '-P', {server!r}, os.environ['PATH'].partition(os.pathsep)[0]]
subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.readline()
"""
"""Source that begins the program for a page with shell blocks: it starts `forked_commands`."""


@for_each(FILES)
def test_fences_name_a_known_language_and_a_reason_not_to_run(path: Path) -> None:
    for info, _, line in blocks(path):
        language, _, remark = info.partition(" ")
        assert language in LANGUAGES_RUN | LANGUAGES_SHOWN, f"{path.name}:{line}: fence {info!r}"
        if remark:
            assert REMARK.fullmatch(remark), f"{path.name}:{line}: fence {info!r}"


@for_each(FILES)
def test_blocks_that_are_not_run_are_programs_all_the_same(path: Path) -> None:
    """A syntax error, such as a missing quote, would fail for a reader who copies the block."""
    for info, code, line in blocks(path):
        language, _, remark = info.partition(" ")
        if language == "python":
            flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile(code, f"{path.name}:{line}", "exec", flags)
        elif language == "sh" and remark.startswith("no-run"):
            done = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True)
            assert done.returncode == 0, f"{path.name}:{line}: {done.stderr}"


NEEDS = (
    (
        r"\b(read|scan|write)_(topic|log)\b|\b(send|poll)_arrow\b|\bimport pyarrow\b",
        ("arrow", "spark", "delta", "iceberg", "sql", "polars", "schemas"),
    ),
    (r"\bpenstock\.spark\b|\bimport pyspark\b", ("spark",)),
    (r"\bpenstock[ .]sql\b", ("sql",)),
    (r"\bpenstock[ .]registry\b|\bregistry=True", ("registry",)),
)
"""Patterns of code that needs an extra, each with the extras that provide it."""


@for_each(
    [path for path in FILES if path.parent.name == "how-to" or path.name in ("README.md", "tutorial.md")]
)
def test_a_page_names_the_extras_that_its_blocks_need(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    code = "".join(code for info, code, _ in blocks(path) if info.startswith(("python", "sh")))
    named = {extra for listed in re.findall(r"\[(\w+(?:,\w+)*)\]", text) for extra in listed.split(",")}
    for use, extras in NEEDS:
        if found := re.search(use, code):
            assert named & set(extras), f"{path.name}: {found[0]} needs penstock[{extras[0]}]; say so"


def runnable() -> list[object]:
    marked = []
    for path in FILES:
        script = script_for(path)
        if script:
            marks = [pytest.mark.spark] if "spark" in script else []
            name = path.relative_to(ROOT).as_posix()
            if name in SLOW:
                marks.append(pytest.mark.slow)
            if name == "README.md":
                marks.append(pytest.mark.again)
            marked.append(pytest.param(path, id=name, marks=marks))
    return marked


@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize("path", runnable())
def test_blocks_run(path: Path, tmp_path: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # more is not earned back
    }
    with ExitStack() as stack:
        if FIXED_PORT.search(path.read_text(encoding="utf-8")):
            stack.enter_context(only_one_at_a_time())
        run_blocks(path, tmp_path, environment)


FIXED_PORT = re.compile(r"\b19\d{3}\b")
"""A pattern for the ports in pages, which are replaced because other processes may run other pages."""


@contextmanager
def only_one_at_a_time() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "penstock-documents.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_blocks(path: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    output = tmp_path / "output.txt"
    workplace = tmp_path / "workplace"
    workplace.mkdir()
    script = script_for(path)
    if "\nshell(" in script and path.relative_to(ROOT).as_posix() not in SLOW:
        programs = tmp_path / "programs"
        programs.mkdir()
        environment = environment | {"PATH": f"{programs}{os.pathsep}{environment['PATH']}"}
        script = FORKED_COMMANDS.format(server=str(ROOT / "tests" / "forked_commands.py")) + script
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=workplace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=PATIENCE_S)
        finally:
            # Brokers that a block started in the background end with the file.
            kill_group(process.pid)
            process.wait()
    assert code == 0, output.read_text(errors="replace")[-4000:]


def kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_rows_of_tables_are_whole_lines() -> None:
    """A Markdown table row that is wrapped is not displayed as a row."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 30
    broken = [
        f"{page.relative_to(ROOT).as_posix()}: {line}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.endswith("|")
    ]
    assert broken == []
