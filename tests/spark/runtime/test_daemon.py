from __future__ import annotations

import subprocess
import sys

CODE = """
import gc, sys, types
__spec__ = types.SimpleNamespace(name={name!r})
def worker(sock, authenticated): return 0
import penstock.spark.source.data_source
print(gc.get_freeze_count() > 0, worker.__module__ != "__main__")
"""


def imported_in(name: str) -> list[str]:
    """Import the data source in a process whose main module is called `name`.

    Return two texts, each "True" or "False": whether objects were excluded from garbage collection, and
    whether Spark's worker function was replaced.
    """
    ran = subprocess.run(
        [sys.executable, "-c", CODE.format(name=name)], capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


def test_workers_that_plan_keep_what_is_imported_out_of_sight_of_the_garbage_collector() -> None:
    # Spark collects garbage after each query that such a worker plans.
    assert imported_in("pyspark.daemon") == ["True", "True"]


def test_other_processes_are_left_as_they_are() -> None:
    assert imported_in("pyspark.sql.streaming.python_streaming_source_runner") == ["False", "False"]
