"""Run DuckDB and Spark, whose own Iceberg and Delta readers check the tables that Penstock wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compat.peers import maven_classpath, python_program

HERE = Path(__file__).parent
READERS = ("duckdb", "spark")
READ_S_MAX = 2400
"""Seconds that a reader may take: Spark needs a minute for some tables, far more on a busy machine."""


def read_by(reader: str, tables: Mapping[str, str], directory: Path, rest: str = "") -> dict[str, pa.Table]:
    """Read tables with DuckDB or Spark; return them by the names they have in `tables`.

    `rest` is the URL of the Iceberg REST catalog, empty if none is used.
    """
    python = python_program("duckdb-lake" if reader == "duckdb" else "spark-4.1")
    words = []
    if reader == "spark":
        asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        place = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        # Everything but PySpark is what these tests run with.
        Path(place, "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        words = [maven_classpath("spark-lake").replace(":", ",")]
    target = directory / f"by-{reader}"
    target.mkdir(exist_ok=True)
    given = target / "asked.json"
    given.write_text(json.dumps({**tables, **({"rest": rest} if rest else {})}))
    dropped = ("PENSTOCK_", "PYSPARK_", "SPARK_", "PYTHONPATH")
    done = subprocess.run(
        [str(python), str(HERE / f"lake_by_{reader}.py"), str(given), *words],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(dropped)},
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=target,
        capture_output=True,
        text=True,
        timeout=READ_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return {name: pq.read_table(target / f"{name}.parquet") for name in tables}
