"""Read Iceberg and Delta tables with DuckDB and its extensions, and write each to a Parquet file.

python lake_by_duckdb.py ASKED.json (table locations by name; the files are written beside it)
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import duckdb  # type: ignore[import-not-found, unused-ignore]


def main(asked: dict[str, str], directory: Path) -> None:
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    for name in ("avro", "httpfs", "iceberg", "delta"):
        module = importlib.import_module(f"duckdb_extension_{name}")
        (file,) = Path(str(module.__path__[0])).rglob("*.duckdb_extension")
        connection.execute(f"load '{file}'")
    connection.execute("set timezone = 'UTC'")
    if rest := asked.pop("rest", None):
        connection.execute(
            f"attach '' as rest (type iceberg, endpoint '{rest}', client_id 'me', client_secret 'hush', "
            f"oauth2_server_uri '{rest}/v1/oauth/tokens')"
        )
    for name, where in asked.items():
        kind, _, place = where.partition("://")
        found = f"rest.{place.partition('/')[2]}" if kind == "iceberg" else f"delta_scan('{place}')"
        connection.execute(f"copy (from {found}) to '{directory / name}.parquet'")


if __name__ == "__main__":
    given = Path(sys.argv[1])
    main(json.loads(given.read_text()), given.parent)
