"""A listener of Spark that writes the last report of each query of a session to a file."""

# ruff: noqa: N802 - the names of methods are Spark's

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.spark.monitoring.reports import reports_directory, write_report

log = logger_named("penstock.spark")


class QueryReports(StreamingQueryListener):
    """Writes a file for each query of a session, with the last report of the query.

        spark.streams.addListener(QueryReports())

    The files are in `directory`, by default `reports_directory`, where `penstock follow` looks. A failed
    write is logged, and the query continues.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        self._directory = reports_directory() if directory is None else Path(directory)
        self._known: dict[str, dict[str, Any]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._known[str(event.id)] = {
            "id": str(event.id),
            "name": event.name,
            "isActive": True,
            "error": None,
        }
        self._write(str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        self._changed(str(progress.id), name=progress.name, progress=json.loads(progress.json))

    def onQueryIdle(self, event: Any) -> None:
        """Do nothing: there was no new record to read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._changed(str(event.id), isActive=False, error=event.exception)
        del self._known[str(event.id)]

    def _changed(self, query_id: str, **values: Any) -> None:
        known = self._known.setdefault(
            query_id, {"id": query_id, "name": None, "isActive": True, "error": None}
        )
        known.update(values)
        self._write(query_id)

    def _write(self, query_id: str) -> None:
        try:
            write_report(self._directory, self._known[query_id])
        except StorageError as error:
            log.warning("no report of query %s: %s", query_id, error)
