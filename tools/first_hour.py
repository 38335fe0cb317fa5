"""Run every example of README, tutorial and how-tos as a new user would, with a freshly built wheel.

Usage: python tools/first_hour.py [--python 3.12]... [--mode terminal|notebook]... [--keep FOLDER] [PAGE]...

For each Python a virtual environment is made outside of the repository. Pages without extras run first, those
with more requirements later. The environment gets the packages that the pages so far have named:
``penstock[...]``, and the modules in code fences such as ``needs: duckdb``. Each page runs twice, each time
in an empty folder:

* terminal: shell blocks are typed into a bash on a pseudo-terminal. Python blocks up to the next shell block
  form a script that runs in a second terminal with ``python -i``, so that later blocks can use what it
  started. Blocks that install packages are typed too; PENSTOCK is the path of the new wheel.
* notebook: Python blocks are cells of one kernel, shell blocks are typed into a terminal. A kernel has a
  running event loop, so cells have ``await x`` instead of ``asyncio.run(x)``.

A block marked `no-run` is not run; the reasons are counted and printed at the end. Test modules (``no-run: a
test module``) run under pytest. The exit code is 1 if anything fails.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from try_wheel import ROOT, VERSIONS, interpreter
from typed_shell import CommandFailed, TypedShell, printable

MODES = ("terminal", "notebook")
BLOCK_TIMEOUT_S = 1200.0
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
PACKAGES = {
    "confluent_kafka": "confluent-kafka",
    "kafka": "kafka-python",
    "pyiceberg": "pyiceberg[sql-sqlite]",
}
"""A dict from a module named in a code fence to its package on PyPI, where the names differ."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"].keys() - {"kerberos"}
"""All but `kerberos`, which compiles against a library of the machine."""

TEST_MODULE = "no-run: a test module;"
TEST_NEEDS = ("pytest", "confluent-kafka", "aiokafka", "kafka-python")
"""Packages that the test modules of a page import, and that the page only names in its text."""


class Block(NamedTuple):
    language: str
    remark: str
    code: str
    line: int


class Page(NamedTuple):
    name: str
    blocks: list[Block]
    needs: list[str]
    """The requirements of the page, in pip's syntax."""


class Failed(Exception):
    """A block did not do what its page says."""


def read_page(name: str) -> Page:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = []
    needs: set[str] = set()
    for match in FENCE.finditer(text):
        language, _, remark = match[1].strip().partition(" ")
        if language not in ("python", "sh"):
            continue
        blocks.append(Block(language, remark, match[2], text.count("\n", 0, match.start()) + 1))
        if remark.startswith("needs: "):
            needs |= {PACKAGES.get(module, module) for module in remark[7:].split(", ")}
        elif remark.startswith(TEST_MODULE):
            needs.update(TEST_NEEDS)
        elif remark.startswith("no-run: installs"):
            for words in re.findall(r"pip install (.*)", match[2]):
                needs.update(shlex.split(words.replace("${PENSTOCK}", "penstock"), comments=True))
    for extras in re.findall(r"penstock\[([a-z,]+)\]", text):
        needs |= {f"penstock[{extra}]" for extra in extras.split(",") if extra in EXTRAS}
    return Page(name, blocks, sorted(needs))


def all_pages() -> list[str]:
    how_tos = sorted((ROOT / "docs" / "how-to").glob("*.md"))
    return ["README.md", "docs/tutorial.md", *(path.relative_to(ROOT).as_posix() for path in how_tos)]


class Environment:
    """A fresh virtual environment; PENSTOCK among its variables is the path of the wheel."""

    def __init__(self, python: Path, wheel: Path, place: Path) -> None:
        subprocess.run([python, "-m", "venv", place / "venv"], check=True)
        self.bin = place / "venv" / "bin"
        self.python = self.bin / "python"
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PENSTOCK"))
        }
        self.variables |= {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PENSTOCK": str(wheel),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        self._there: set[str] = set()

    def install(self, *needs: str) -> None:
        if missing := sorted(set(needs) - self._there):
            print("  + pip install", *missing, flush=True)
            # The name in the package index is another project's: what a page calls PENSTOCK is the wheel.
            words = [self.variables["PENSTOCK"] if word == "penstock" else word for word in missing]
            command = [self.python, "-m", "pip", "install", "--quiet", *words]
            subprocess.run(command, env=self.variables, cwd=self.bin, check=True)
            probe = [self.python, "-c", "from penstock import Broker"]
            subprocess.run(probe, env=self.variables, cwd=self.bin, check=True)
            self._there |= set(missing)


class Kernel:
    """A notebook kernel that runs in an environment and executes cells one after the other."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        environment.install("ipykernel")
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [environment.python, ROOT / "tools" / "notebook_cells.py"],
            cwd=folder,
            env=environment.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"code": code, "timeout_s": BLOCK_TIMEOUT_S}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"the kernel is gone:\n{self._process.communicate()[1][-4000:]}")
        answer = json.loads(line)
        self.said += [f"{kind}: {text}" for kind, text in answer["outputs"]]
        if answer["error"]:
            raise Failed(answer["error"][-4000:])

    def close(self) -> None:
        try:
            # What the kernel itself says is about ports and encryption.
            self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def steps(page: Page) -> Iterator[tuple[str, Block]]:
    """Yield each block with its step: ``skip``, ``save``, ``install``, ``test``, ``type`` or ``run``."""
    for block in page.blocks:
        if block.remark.startswith("file: "):
            yield "save", block
        elif block.remark.startswith(TEST_MODULE):
            yield "test", block
        elif block.remark.startswith("no-run: installs"):
            yield "install", block
        elif block.remark.startswith("no-run"):
            yield "skip", block
        else:
            yield ("type" if block.language == "sh" else "run"), block


def run_terminal(page: Page, environment: Environment, folder: Path, log: list[str]) -> None:
    with (
        TypedShell(folder, environment.variables) as shell,
        TypedShell(folder, environment.variables) as window,
    ):
        script: list[Block] = []
        scripts = itertools.count(1)

        def run_script() -> None:
            if script:
                path = folder / f"script_{next(scripts)}.py"
                path.write_text("\n".join(f"# line {each.line}\n{each.code}" for each in script))
                script.clear()
                window.run_python(path.name, BLOCK_TIMEOUT_S)

        try:
            for step, block in steps(page):
                if step == "run":
                    script.append(block)
                    continue
                run_script()
                if step == "type":
                    shell.type(block.code, BLOCK_TIMEOUT_S)
                elif step == "install":
                    shell.type(block.code, BLOCK_TIMEOUT_S)
                    if "activate" in block.code:
                        window.type(". .venv/bin/activate\n", BLOCK_TIMEOUT_S)
                elif step == "save":
                    (folder / block.remark[6:]).write_text(block.code)
                elif step == "test":
                    (folder / "test_it.py").write_text(block.code)
                    # What other people's clients warn of is theirs.
                    shell.type(
                        "python -m pytest -q -W ignore -p no:cacheprovider test_it.py\n", BLOCK_TIMEOUT_S
                    )
            run_script()
            window.leave_python(BLOCK_TIMEOUT_S)
        finally:
            log += [printable(shell.output), printable(window.output)]


def run_notebook(page: Page, environment: Environment, folder: Path, log: list[str]) -> None:
    text = (ROOT / page.name).read_text(encoding="utf-8")
    with ExitStack() as stack:
        shell = stack.enter_context(TypedShell(folder, environment.variables))
        kernel = Kernel(environment, folder)
        stack.callback(kernel.close)
        try:
            for step, block in steps(page):
                if step == "save":
                    (folder / block.remark[6:]).write_text(block.code)
                elif step == "type":
                    shell.type(block.code, BLOCK_TIMEOUT_S)
                elif step == "run":
                    code = block.code
                    if "asyncio.run(" in code:
                        if "In a notebook" not in text:
                            raise Failed(
                                f"line {block.line}: no word of `await` in a notebook, where a loop runs"
                            )
                        code = code.replace("asyncio.run(", "await (")
                    try:
                        kernel.run(code)
                    except Failed as error:
                        raise Failed(f"cell of line {block.line}:\n{error}") from None
        finally:
            log += [*kernel.said, printable(shell.output)]


def try_page(page: Page, mode: str, environment: Environment, place: Path, keep: Path | None) -> bool:
    """Return True if all blocks of a page succeed; print the time it took, or the failure."""
    folder = place / f"{Path(page.name).stem}-{mode}"
    folder.mkdir()
    log: list[str] = []
    run = run_terminal if mode == "terminal" else run_notebook
    try:
        with ExitStack() as stack:
            if any(re.search(r"\b19\d{3}\b", block.code) for block in page.blocks):
                # The tests of documents may be at the same ports.
                lock = (Path(tempfile.gettempdir()) / "penstock-documents.lock").open("w")
                fcntl.flock(stack.enter_context(lock), fcntl.LOCK_EX)
            began_at = time.monotonic()
            run(page, environment, folder, log)
        failure = None
    except (Failed, CommandFailed, TimeoutError) as error:
        failure = str(error)
    took_s = time.monotonic() - began_at
    print(f"  {mode:9} {page.name:48} {'FAILED' if failure else 'ok':6} {took_s:6.1f} s", flush=True)
    if failure:
        print("\n".join(f"    | {line}" for line in failure.splitlines()), flush=True)
    if keep is not None:
        version = environment.bin.parents[1].name
        (keep / f"{version}-{folder.name}.log").write_text("\n".join([*log, failure or ""]))
    return failure is None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", help="3.11 to 3.14; by default every one that is here")
    parser.add_argument("--mode", action="append", choices=MODES, help="by default both")
    parser.add_argument("--wheel", type=Path, help="this one, rather than a new one")
    parser.add_argument("--keep", type=Path, help="a folder for what was on terminals and in notebooks")
    parser.add_argument("pages", nargs="*", help="by default README, tutorial and how-tos")
    chosen = parser.parse_args()
    found = {version: interpreter(version) for version in chosen.python or VERSIONS}
    missing = [version for version, python in found.items() if python is None]
    if missing:
        print(f"not on this machine: Python {', '.join(missing)}", file=sys.stderr)
        if chosen.python:
            return 1
    pages = sorted(
        (read_page(name) for name in chosen.pages or all_pages()), key=lambda page: len(page.needs)
    )
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    failed = 0
    began_at = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-first-hour-", ignore_cleanup_errors=True) as folder:
        wheel = chosen.wheel
        if wheel is None:
            build = [sys.executable, "-m", "build", "--wheel", "--outdir", folder]
            subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            wheel = next(Path(folder).glob("*.whl"))
        for version, python in found.items():
            if python is None:
                continue
            print(f"Python {version}", flush=True)
            place = Path(folder) / version
            place.mkdir()
            environment = Environment(python, wheel.resolve(), place)
            for page in pages:
                environment.install("penstock", *page.needs)
                for mode in chosen.mode or MODES:
                    failed += not try_page(page, mode, environment, place, chosen.keep)
    skipped = Counter(block.remark for page in pages for step, block in steps(page) if step == "skip")
    print(
        f"{time.monotonic() - began_at:.0f} s; {failed} failed. Not run, with the reason that the page gives:"
    )
    for remark, count in sorted(skipped.items()):
        print(f"  {count} × {remark.removeprefix('no-run: ')}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
