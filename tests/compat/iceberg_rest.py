"""Iceberg's own REST catalog, as its project tests with it, with its tables in a directory and SQLite."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from pathlib import Path

from compat.peers import free_ports, java_command, maven_classpath, until

CREDENTIAL = "me:hush"
"""What the server exchanges for a token (OAuth's client credentials): any that has this form."""

START_S_MAX = 600
"""A JVM at a low priority takes minutes to start on a machine with other work."""


class IcebergRest:
    """The server, which may be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
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
        """End it at once."""
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
