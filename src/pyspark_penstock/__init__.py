"""Makes the Spark data source `penstock` known: Spark imports every module named `pyspark_*`.

An exception here would break the lookup of every data source, not only of this one.
"""

from __future__ import annotations

from penstock.spark.source import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]
