"""Query topics: Arrow data sets with push-down, SQL on DuckDB, lazy frames of Polars, live queries.

Every name is imported on first use, since queries need numpy and pyarrow, and DuckDB or Polars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.queries.asking import sql as sql
    from penstock.queries.dataset import capture_dataset as capture_dataset
    from penstock.queries.dataset import log_dataset as log_dataset
    from penstock.queries.dataset import topic_dataset as topic_dataset
    from penstock.queries.polars_frames import scan_polars as scan_polars

_HOMES = {
    "capture_dataset": "dataset",
    "log_dataset": "dataset",
    "scan_polars": "polars_frames",
    "sql": "asking",
    "topic_dataset": "dataset",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
