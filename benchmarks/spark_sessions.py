"""Make the Spark session in which a benchmark runs, and print its kind.

PENSTOCK_BENCH_SESSION selects the kind: ``penstock`` (made by `penstock.spark.session`, the default),
``configured`` (an ordinary session after `penstock.spark.configure`) or ``own`` (with Spark's defaults).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from penstock.errors import ConfigError


def bench_session(name: str, config: Mapping[str, str], master: str = "local[2]") -> Any:
    """Return a new Spark session of the kind that PENSTOCK_BENCH_SESSION selects.

    Raises:
        ConfigError: there is no such kind.
    """
    kind = os.environ.get("PENSTOCK_BENCH_SESSION", "penstock")
    print(f"session: {kind}", flush=True)
    if kind == "penstock":
        from penstock.spark import session

        return session(name, master, config=config)
    if kind not in ("configured", "own"):
        raise ConfigError(f"PENSTOCK_BENCH_SESSION is {kind!r}; it is penstock, configured or own")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for setting, value in config.items():
        builder = builder.config(setting, value)
    if kind == "own":
        # As in an environment that is activated: Spark's own choice is the first python3 of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        from penstock.spark import configure

        builder = configure(builder)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made
