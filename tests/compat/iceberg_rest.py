"""Iceberg's own REST catalog server (its project's test fixture), with tables in a directory and SQLite."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from pathlib import Path

from compat.peers import free_ports, java_command, maven_classpath, until

CREDENTIAL = "me:hush"
"""The OAuth client credentials that are exchanged for a token; the server accepts any in this form."""

START_S_MAX = 600
"""Seconds that the server may take to start: a low-priority JVM on a busy machine takes minutes."""


class IcebergRest:
    """The REST catalog server as a process that tests can kill and start again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = {
            "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "CATALOG_URI": f"jdbc:sqlite:{self._directory}/catalog.db",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_WAREHOUSE": str(self._directory / "warehouse"),
            "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
            "CATALOG_REST_PORT": str(self.port),
        }
        command = java_command(maven_classpath("iceberg-rest"), "org.apache.iceberg.rest.RESTCatalogServer")
        with (self._directory / "rest.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        until(self._answers, "Iceberg's REST catalog answers", START_S_MAX)

    def kill(self) -> None:
        """End the server with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "rest.log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{self.url}/v1/config", timeout=5):
                return True
        except OSError:
            return False
