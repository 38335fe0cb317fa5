from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from penstock.spark.runtime import session
from penstock.spark.runtime.worker_python import worker_python

PACKAGE = Path(pyspark.__file__).parent
ARCHIVES = [PACKAGE / "python" / "lib" / "pyspark.zip", *(PACKAGE / "python" / "lib").glob("py4j-*-src.zip")]
WHERE = (
    "import py4j, pyspark, sys; print(pyspark.__file__, py4j.__file__, sys.argv[1:], *sys.path, sep='\\n')"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path / "a cache"


def test_workers_import_what_is_installed_and_not_the_archives(cache: Path, tmp_path: Path) -> None:
    program = worker_python(PACKAGE)
    assert Path(program).is_relative_to(cache)
    real = [os.path.realpath(archive) for archive in ARCHIVES]
    path = [*map(str, ARCHIVES), "/jars/some.jar", *real, *map(str, ARCHIVES), str(tmp_path / "a folder *")]
    told = subprocess.run(
        [program, "-c", WHERE, "an argument", "*"],
        env={**os.environ, "PYTHONPATH": ":".join(path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert not any(".zip/" in line for line in told[:2])
    assert told[2] == "['an argument', '*']"
    assert told[3:6] == ["", "/jars/some.jar", str(tmp_path / "a folder *")]
    assert worker_python(PACKAGE) == program


def test_another_spark_keeps_its_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker_python(tmp_path) == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python(PACKAGE) == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(PACKAGE))
    assert worker_python(PACKAGE) != sys.executable


def test_without_a_place_for_the_program_python_is_started_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.runtime.worker_python.cache_directories", list)
    assert worker_python(PACKAGE) == sys.executable


def test_the_small_program_is_for_workers_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    kept = ("JAVA_HOME", "PENSTOCK_SPARK_SESSION", "PENSTOCK_CHOSEN_PYTHON", *names)
    monkeypatch.setattr(session, "worker_python", lambda package: "/cache/python")
    with monkeypatch.context() as patched:
        for name in kept:
            patched.setenv(name, "to be put back")  # what is set here is gone when the context ends
        for name in ("JAVA_HOME", "PENSTOCK_CHOSEN_PYTHON", *names):
            patched.delenv(name)
        session._prepare_environment("local[2]")
        assert [os.environ[name] for name in names] == ["/cache/python"] * 2
        session._prepare_environment("spark://host:7077")
        assert [os.environ[name] for name in names] == [sys.executable] * 2
        patched.setenv("PYSPARK_PYTHON", "/chosen")
        session._prepare_environment("local[2]")
        assert [os.environ[name] for name in names] == ["/chosen", "/cache/python"]
