"""Compiled kernels on machines as they are: cold and warm caches, no place to write, no numba."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.records.kernels import decode_kernels as kernels
from penstock.records.kernels import jit

SOURCE = Path(penstock.__file__).parent
DECODE = """
from penstock.records.batch import encode_batch
from penstock.records.decode import decode_columns
print(decode_columns([encode_batch([(b"k", b"v", (), 1)] * 3)], columns=["value"]).value.to_list())
"""
ANSWER = "[b'v', b'v', b'v']\n"
NOTICE = "compiling the record kernels"
LOUD = "import logging; logging.basicConfig(level=logging.INFO)\n"

needs_numba = pytest.mark.skipif(not jit.COMPILED, reason="numba is not installed, or switched off")


def start(code: str = DECODE, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str = DECODE, **environment: str) -> tuple[str, str]:
    process = start(code, **environment)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return out, err


def test_without_jit_the_same_functions_run() -> None:
    out, err = run(PENSTOCK_PURE_PYTHON="1")
    assert (out, err) == (ANSWER, "")


def test_without_numba_the_same_functions_run() -> None:
    out, err = run("import sys; sys.modules['numba'] = None\n" + DECODE)
    assert (out, err) == (ANSWER, "")


def test_without_pyarrow_columns_are_plain_numpy() -> None:
    out, _ = run("import sys; sys.modules['pyarrow'] = None\n" + DECODE, PENSTOCK_PURE_PYTHON="1")
    assert out == ANSWER


@needs_numba
def test_a_cold_cache_says_so_once_and_several_processes_share_it(tmp_path: Path) -> None:
    processes = [start(LOUD + DECODE, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    notices = 0
    for process in processes:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out) == (0, ANSWER), err
        assert err.count(NOTICE) <= 1  # a late one may find the others' work
        notices += err.count(NOTICE)
    assert notices
    assert any(tmp_path.rglob("*.nbc"))
    out, err = run(NUMBA_CACHE_DIR=str(tmp_path))
    assert (out, err) == (ANSWER, "")


@needs_numba
def test_a_library_writes_nothing_to_stderr_unless_logging_is_configured(tmp_path: Path) -> None:
    assert run(NUMBA_CACHE_DIR=str(tmp_path)) == (ANSWER, "")


@needs_numba
def test_a_package_that_cannot_be_written_caches_in_the_home_directory(tmp_path: Path) -> None:
    package = tmp_path / "site" / "penstock"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "messages", "definitions"))
    (package / "records" / "kernels" / "__pycache__").write_text(
        "a file where the cache's directory would be"
    )
    environment = {
        "PYTHONPATH": str(tmp_path / "site"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home" / ".cache"),
    }
    out, err = run(LOUD + DECODE, **environment)
    assert out == ANSWER
    assert NOTICE in err
    assert any((tmp_path / "home").rglob("*.nbc"))
    assert run(**environment) == (ANSWER, "")


@needs_numba
def test_nowhere_to_write_compiles_for_the_process_alone(tmp_path: Path) -> None:
    package = tmp_path / "site" / "penstock"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "messages", "definitions"))
    (package / "records" / "kernels" / "__pycache__").write_text(
        "a file where the cache's directory would be"
    )
    (tmp_path / "home").write_text("a file where the home directory would be")
    environment = {
        "PYTHONPATH": str(tmp_path / "site"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
    }
    out, err = run(LOUD + DECODE, **environment)
    assert out == ANSWER
    assert NOTICE in err


@needs_numba
def test_kernels_keep_their_documentation() -> None:
    assert kernels.gather.__doc__ is not None
    assert kernels.gather.__doc__.startswith("Copy entries")


@needs_numba
def test_machine_code_is_of_the_sources_it_was_made_from(tmp_path, monkeypatch) -> None:
    """numba alone would go on with what was inlined from a module that has changed since."""
    head = "from penstock.records.kernels.compiled import kernel\n"

    def stamp(called: str) -> object:
        for folder, name, text in (
            ("low", "low_kernels", f"@kernel\ndef low(number):\n    return {called}\n"),
            (
                "high",
                "high_kernels",
                "from low_kernels import low\n@kernel\ndef high(n):\n    return low(n)\n",
            ),
        ):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.py").write_text(head + text, encoding="utf-8")
            monkeypatch.syspath_prepend(str(tmp_path / folder))
            monkeypatch.delitem(sys.modules, name, raising=False)
        jit._digest.cache_clear()
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        return importlib.import_module("high_kernels").high._cache._cache_file._source_stamp

    first = stamp("number + 1")
    assert stamp("number + 1") == first
    assert stamp("number - 1") != first
