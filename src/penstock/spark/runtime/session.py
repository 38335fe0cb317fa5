"""A Spark session with the settings that matter for a Python data source.

Spark's defaults suit a JVM source on a cluster. docs/reference/spark-options.md lists the settings made here,
with the measured gain of each; settings of the caller override them.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, MissingDependencyError
from penstock.spark.runtime.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHOSEN_HERE = "PENSTOCK_CHOSEN_PYTHON"
"""An environment variable with the PYSPARK_PYTHON that an earlier session chose. A later session replaces
only this value, never one that the user has set."""

CHECKPOINT_MANAGER = "FileSystemBasedCheckpointFileManager"

_ARROW_WITHOUT_CHECKS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")

SECRETS = "(?i)secret|password|token|access[.]?key|jaas|private key|keystore[.]key|key[.]pem|user[.]info"
"""A regular expression for options and settings whose values Spark hides: Spark's own pattern, and keys and
JAAS text of Kafka's clients, and users of registries. ``private key`` is in the first line of every key in
PEM.
"""

FASTER: Mapping[str, str] = {
    "spark.redaction.regex": SECRETS,
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "penstock.spark.runtime.daemon",
}
"""Settings that make Python sources faster without changing results; `configure` makes them for every master.
"""

SETTINGS: Mapping[str, str] = {
    **FASTER,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The settings that `session` makes for every master."""


def session(
    app_name: str = "penstock",
    master: str = "local[*]",
    *,
    config: Mapping[str, object] | None = None,
    **conf: object,
) -> SparkSession:
    """Return the running Spark session, or a new one on `master` with settings fit for the source `penstock`.

    Spark's settings are given by their dotted names, in `config` or as ``**{"spark.ui.enabled": True}``,
    and override the ones made here. With a ``spark://`` master, the executors need this package in
    the Python that PYSPARK_PYTHON names (without it: the same path as here).

    Raises:
        ConfigError: there is no usable Java, or the name of a setting does not start with ``spark.``.
        MissingDependencyError: pyspark is not installed.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            f"Spark needs pyspark: pip install 'penstock[spark]' ({error})"
        ) from None

    chosen = {name: _as_text(value) for name, value in {**(config or {}), **conf}.items()}
    for name in chosen:
        if not name.startswith("spark."):
            raise ConfigError(f"{name!r} is no setting of Spark; their names start with 'spark.'")
    if SparkContext._active_spark_context is None:
        _prepare_environment(master)
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in settings_for(master, chosen).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        # Warned once per process wherever pandas 3 is installed, whether or not anything uses pandas.
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        return builder.getOrCreate()


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add settings that make Python sources faster to a builder of sessions, and return that builder.

    Settings that the builder or ``spark-defaults.conf`` already has are kept. Settings given to the builder
    later override the added ones. Options for Java are appended. No result of a query changes: time zone,
    shuffle partitions, log and web interface of Spark stay as they are (`session` sets these too). With a
    local master the environment gets the Java and the Python of `session`, unless JAVA_HOME or PYSPARK_PYTHON
    is set. A builder of a session in a server of Spark Connect stays as it is: that server has a file of
    settings (``penstock spark settings``).

    Warns (UserWarning) if Spark runs in this process already: settings that Spark reads at its start then
    have no effect.

    Raises:
        ConfigError: there is no usable Java, with a local master.
    """
    from pyspark import SparkContext

    given = _spark_defaults()
    given |= {name: _as_text(value) for name, value in getattr(builder, "_options", {}).items()}
    if "spark.remote" in given or (os.environ.get("SPARK_REMOTE") and "spark.master" not in given):
        return builder
    if SparkContext._active_spark_context is not None:
        warnings.warn(
            "Spark runs in this process already, and most settings for sources in Python count at its start:"
            " call penstock.spark.configure before the first session, or start Spark with the file that"
            " 'penstock spark settings' writes",
            stacklevel=2,
        )
        return builder
    master = given.get("spark.master", "")
    if is_local(master):
        _prepare_environment(master)
    for name, value in faster_settings(master, given).items():
        builder = builder.config(name, value)
    return builder


def _spark_defaults() -> dict[str, str]:
    """Return the settings in Spark's ``spark-defaults.conf``; a dict that is empty if there is no file."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    path = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    said = (line.strip() for line in lines)
    pairs = [re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in said if line[:1] not in "#!"]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def faster_settings(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that `configure` adds to the settings `given`; `master` is empty if unknown."""
    settings = dict(FASTER)
    manager = checkpoint_manager() if is_local(master) else None
    if manager is not None:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = manager
    added = {name: value for name, value in settings.items() if name not in given}
    for name in _JAVA_OPTIONS:
        added[name] = " ".join(filter(None, [_ARROW_WITHOUT_CHECKS, given.get(name)]))
    return added


def settings_for(master: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session on `master`, including the user's settings `chosen`."""
    settings = dict(SETTINGS)
    if is_local(master):
        settings.update(_local_settings(master))
    quiet = f"-Dlog4j2.configurationFile={_log_settings()}"
    for name in _JAVA_OPTIONS:
        ours = [_ARROW_WITHOUT_CHECKS]
        if name == "spark.driver.extraJavaOptions" and "log4j2.configurationFile" not in chosen.get(name, ""):
            ours.append(quiet)
        settings[name] = " ".join([*ours, *filter(None, [chosen.get(name)])])
    settings.update({name: value for name, value in chosen.items() if name not in _JAVA_OPTIONS})
    return settings


def is_local(master: str) -> bool:
    """Return True if driver and executors run in one process on this machine."""
    return master == "local" or master.startswith("local[")


def local_cores(master: str) -> int:
    """Return the number of concurrent tasks under a master: ``local``, ``local[4]`` or ``local[*]``."""
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    if inside == "*":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(inside) if inside.isdecimal() and int(inside) else 1


def _local_settings(master: str) -> dict[str, str]:
    settings = {
        "spark.sql.shuffle.partitions": str(local_cores(master)),
        # Laptops change names and networks; a local session needs neither.
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    manager = checkpoint_manager()
    if manager is not None:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = manager
    return settings


def checkpoint_manager() -> str | None:
    """Return the class name of Spark's checkpoint manager that starts no child processes, or None.

    The name is found in the installed jars, because its package differs between releases.
    """
    import zipfile

    import pyspark

    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    for jar in jars.glob("spark-sql_*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(f"/{CHECKPOINT_MANAGER}.class"):
                    return name.removesuffix(".class").replace("/", ".")
    return None


def _log_settings() -> str:
    """Return the URI of the log settings file; a temporary copy of the file if the package is in a zip."""
    beside = Path(__file__).parent.with_name("log4j2.properties")
    if beside.exists():
        return beside.as_uri()
    import tempfile
    from importlib.resources import files

    text = files("penstock.spark").joinpath("log4j2.properties").read_text(encoding="utf-8")
    with tempfile.NamedTemporaryFile(
        "w", prefix="penstock-log4j2-", suffix=".properties", delete=False
    ) as copy:
        copy.write(text)
    return Path(copy.name).as_uri()


def _prepare_environment(master: str) -> None:
    """Set the environment variables that Spark needs before the JVM starts.

    Only the environment chooses the Python of the planning workers: the setting spark.pyspark.python has no
    effect on them.
    """
    from penstock.spark.runtime.java import find_java

    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    # For `pyspark_penstock`, which leaves the workers of other sessions as they are.
    os.environ["PENSTOCK_SPARK_SESSION"] = "1"
    chosen, python = os.environ.get(_CHOSEN_HERE), _python_for(master)
    # Workers that plan take the second where it is there.
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if os.environ.get(name) == chosen:
            os.environ[name] = python
    os.environ[_CHOSEN_HERE] = python


def _python_for(master: str) -> str:
    """Return the path of the workers' Python, or with a local master, of a small program that starts it."""
    import pyspark

    return worker_python(Path(pyspark.__file__).parent) if is_local(master) else sys.executable


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
