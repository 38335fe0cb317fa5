"""Makes the Spark data source `penstock` known: Spark imports every module named `pyspark_*`.

It does so in a fresh process whenever a query names a data source that is not Spark's own. An
exception here would fail all of them, and time spent here slows all of them. So this module
imports nothing of the package, raises nothing, and leaves everything else to the moment at which the data
source `penstock` itself is asked for.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["DefaultSource"]

try:
    from pyspark.sql.datasource import DataSource
except Exception:
    # No PySpark, one before 4.0, or a broken one: nothing looks for data sources there.
    __all__.remove("DefaultSource")
else:

    class DefaultSource(DataSource):
        """Stands for `penstock.spark.PenstockDataSource` until there is an object to be made."""

        @classmethod
        def name(cls) -> str:
            return "penstock"

        def __new__(cls, *args: Any, **options: Any) -> Any:
            """An object of the real class.

            Raises:
                MissingDependencyError: this PySpark is too old, or a library is missing.
            """
            from penstock.spark.runtime.worker_errors import plain_errors

            with plain_errors():
                from penstock.spark import PenstockDataSource

            return PenstockDataSource(*args, **options)


if os.environ.get("PENSTOCK_SPARK_SESSION"):
    # Only below a session of `penstock.spark`, whose workers talk over unix domain sockets.
    try:
        from penstock.spark.runtime.daemon import leave_planner_quietly

        leave_planner_quietly()
    except Exception:
        # What is left is a traceback on the screen when an idle worker ends.
        pass
