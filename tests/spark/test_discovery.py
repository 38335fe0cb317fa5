"""Tests of the module through which Spark finds the data source, for all Spark releases.

A stub package stands in for older PySpark releases. Each case runs in a process of its own and looks for data
sources as Spark does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"

LOOKUP = """
import importlib, pkgutil, sys
sys.path[:0] = [{stubs!r}, {sources!r}]
before = set(sys.modules)
mod = importlib.import_module("pyspark_penstock")
print("loaded", *sorted(name for name in set(sys.modules) - before if name.split(".")[0] == "penstock"))
print("offers", *(name for name in ("DefaultSource",) if hasattr(mod, name)))
if hasattr(mod, "DefaultSource"):
    from pyspark.sql.datasource import DataSource
    assert issubclass(mod.DefaultSource, DataSource)
    print("name", mod.DefaultSource.name())
    try:
        print("made", type(mod.DefaultSource(options={{"subscribe": "t"}})).__name__)
    except Exception as error:
        print("error", type(error).__name__, error)
"""

DATASOURCE = """
    class DataSource:
        def __init__(self, options):
            self.options = options
    class DataSourceReader: pass
    class DataSourceStreamReader: pass
    class DataSourceWriter: pass
    class DataSourceArrowWriter: pass
    class DataSourceStreamWriter: pass
    class DataSourceStreamArrowWriter: pass
    class InputPartition: pass
    class WriterCommitMessage: pass
"""


def stub(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return directory


def look_up(stubs: Path, *, is_ours: bool = False) -> list[str]:
    """Return what Spark's search for data sources finds, one result a line.

    `is_ours` simulates a session that Penstock has started.
    """
    code = LOOKUP.format(stubs=str(stubs), sources=str(SOURCES))
    kept = {name: value for name, value in os.environ.items() if name != "PENSTOCK_SPARK_SESSION"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**kept, **({"PENSTOCK_SPARK_SESSION": "1"} if is_ours else {})},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [line.rstrip() for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"pyspark/__init__.py": "raise ModuleNotFoundError('no pyspark', name='pyspark')"}, "absent"),
        ({"pyspark/__init__.py": "__version__ = '3.5.1'", "pyspark/sql/__init__.py": ""}, "no sources"),
        ({"pyspark/__init__.py": "raise RuntimeError('no Java, no luck')"}, "broken"),
        ({"pyspark/__init__.py": "import numpy.no_such_part"}, "a library is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_is_offered_where_spark_knows_no_python_sources(
    tmp_path: Path, files: dict[str, str], why: str
) -> None:
    assert look_up(stub(tmp_path, files)) == ["loaded", "offers"]


OLDER = """
import sys
import pyspark, pyspark.version
pyspark.__version__ = pyspark.version.__version__ = {version!r}
from pyspark.sql import datasource
from pyspark.sql.pandas import functions, types
sys.modules["pyspark.sql.streaming.datasource"] = None
whole = types.to_arrow_schema
types.to_arrow_schema = lambda schema: whole(schema, timezone="UTC")
if {version!r} < "4.1":
    del datasource.DataSourceStreamArrowWriter, functions.arrow_udf
"""


@pytest.mark.parametrize(("version", "writer"), [("4.0.5", "RowStreamWriter"), ("4.1.4", "StreamWriter")])
def test_an_older_spark_gets_what_it_can_use(tmp_path: Path, version: str, writer: str) -> None:
    """The test removes newer features from the installed PySpark; soak tests use the real releases."""
    code = OLDER.format(version=version) + textwrap.dedent(
        """
        from pyspark.sql.types import BinaryType, StringType, StructField, StructType
        from pyspark_penstock import DefaultSource
        at = {"kafka.bootstrap.servers": "127.0.0.1:1"}
        source = DefaultSource({**at, "subscribe": "t"})
        reader = source.streamReader(source.schema())
        print(type(reader).__name__, type(source.reader(source.schema())).__name__)
        reader._work.projection._arrow_schema()
        rows = StructType([StructField("value", StringType())])
        sink = DefaultSource({**at, "topic": "t"})
        print(type(sink.streamWriter(rows, False)).__name__, type(sink.writer(rows, False)).__name__)
        from penstock.spark.runtime.releases import arrow_udf
        try:
            arrow_udf(lambda value: value, BinaryType(), instead="do without")
        except ImportError as error:
            print(error)
        """
    )
    lines = run_python(code).splitlines()
    assert lines[:2] == ["UnlimitedStreamReader BatchReader", f"{writer} BatchWriter"]
    refusal = "PySpark 4.0.5 has no functions of Arrow arrays, which came with 4.1: do without"
    assert lines[2:] == ([refusal] if version < "4.1" else [])


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(SOURCES)!r}]\n{code}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_extra_leaves_an_installed_spark_alone() -> None:
    """With any version bound, pip could replace an installed Spark outside of it."""
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    named = [one for extra in extras for one in extra if one.startswith("pyspark")]
    assert named == ["pyspark"]


def test_a_missing_library_is_named_when_the_source_is_asked_for(tmp_path: Path) -> None:
    stubs = stub(
        tmp_path,
        {
            "pyspark/__init__.py": "__version__ = '4.3.0'",
            "pyspark/sql/__init__.py": "",
            "pyspark/sql/types.py": "import pyarrow",
            "pyspark/sql/datasource.py": DATASOURCE,
            "pyarrow.py": "raise ModuleNotFoundError('No module named pyarrow', name='pyarrow')",
        },
    )
    *_, error = look_up(stubs)
    assert error.startswith(
        "error MissingDependencyError penstock.spark needs pyarrow, which is not installed: "
    )


def test_the_source_itself_is_made_where_it_can_be(tmp_path: Path) -> None:
    found = look_up(tmp_path)
    assert found == ["loaded", "offers DefaultSource", "name penstock", "made PenstockDataSource"]


def test_workers_of_our_own_sessions_are_taught_to_end_quietly(tmp_path: Path) -> None:
    loaded, *others = look_up(tmp_path, is_ours=True)
    assert "penstock.spark.runtime.daemon" in loaded.split()
    assert not {"penstock.spark.source.data_source", "penstock.client"} & set(loaded.split())
    assert others[-1] == "made PenstockDataSource"


def test_names_of_the_package_say_what_is_needed(tmp_path: Path) -> None:
    stubs = stub(tmp_path, {"pyspark/__init__.py": "raise ModuleNotFoundError('none', name='pyspark')"})
    paths = [str(stubs), str(SOURCES)]
    code = f"import sys; sys.path[:0] = {paths!r}; from penstock.spark import to_cloudevents"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (
        "MissingDependencyError: penstock.spark needs PySpark 4.0 or newer, which is not installed"
        in done.stderr
    )
