from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.errors import ConfigError
from penstock.spark.runtime.session import (
    checkpoint_manager,
    configure,
    local_cores,
    session,
    settings_for,
)


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[4,2]", 4)])
def test_cores_of_a_local_master(master: str, cores: int) -> None:
    assert local_cores(master) == cores


def test_all_cores() -> None:
    assert local_cores("local[*]") == len(os.sched_getaffinity(0))


def test_a_local_session_shuffles_by_its_cores_and_a_cluster_as_it_likes() -> None:
    local = settings_for("local[3]", {})
    assert local["spark.sql.shuffle.partitions"] == "3"
    assert local["spark.sql.streaming.checkpointFileManagerClass"] == checkpoint_manager()
    cluster = settings_for("spark://somewhere:7077", {})
    assert "spark.sql.shuffle.partitions" not in cluster
    assert "spark.driver.host" not in cluster
    assert cluster["spark.python.unix.domain.socket.enabled"] == "true"
    assert cluster["spark.sql.session.timeZone"] == "UTC"


def test_the_checkpoint_manager_is_in_the_jars() -> None:
    manager = checkpoint_manager()
    assert manager is not None
    assert manager.startswith("org.apache.spark.sql.execution.streaming.")


def test_what_the_caller_says_wins_and_java_options_add_up() -> None:
    settings = settings_for(
        "local[2]", {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Xss4m", "spark.x": "y"}
    )
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.x"] == "y"
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Xss4m")
    assert "arrow.enable_unsafe_memory_access" in settings["spark.driver.extraJavaOptions"]
    assert "log4j2.configurationFile" not in settings["spark.executor.extraJavaOptions"]
    own = settings_for("local", {"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=mine"})
    assert own["spark.driver.extraJavaOptions"].count("log4j2.configurationFile") == 1


def test_a_setting_of_something_else_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'ui\.enabled' is no setting of Spark"):
        session("x", "local", config={"ui.enabled": False})


def builder_with(**settings: str) -> SparkSession.Builder:
    builder = SparkSession.Builder()
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def options_of(builder: SparkSession.Builder) -> dict[str, str]:
    return dict(builder._options)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a process without Spark, and restore the environment variables after the test."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PENSTOCK_CHOSEN_PYTHON"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
        monkeypatch.delenv(name)
    monkeypatch.setenv("PENSTOCK_SPARK_SESSION", "")


@pytest.mark.usefixtures("no_spark")
def test_a_builder_gets_what_changes_no_answer() -> None:
    builder = builder_with(**{"spark.master": "local[2]", "spark.app.name": "own"})
    assert configure(builder) is builder
    options = options_of(builder)
    assert options["spark.python.unix.domain.socket.enabled"] == "true"
    assert options["spark.python.daemon.module"] == "penstock.spark.runtime.daemon"
    assert options["spark.sql.streaming.checkpointFileManagerClass"] == checkpoint_manager()
    assert options["spark.app.name"] == "own"
    of_a_session = set(settings_for("local[2]", {}))
    assert of_a_session - set(options) == {
        "spark.driver.bindAddress",
        "spark.driver.host",
        "spark.sql.execution.arrow.pyspark.enabled",
        "spark.sql.session.timeZone",
        "spark.sql.shuffle.partitions",
        "spark.ui.enabled",
        "spark.ui.showConsoleProgress",
    }
    assert os.environ["PENSTOCK_SPARK_SESSION"] == "1"
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] != ""


@pytest.mark.usefixtures("no_spark")
def test_what_a_builder_has_stays_and_java_options_add_up() -> None:
    mine = {"spark.redaction.regex": "mine", "spark.driver.extraJavaOptions": "-Xss4m"}
    options = options_of(configure(builder_with(**mine)))
    assert options["spark.redaction.regex"] == "mine"
    assert options["spark.driver.extraJavaOptions"].endswith("get=false -Xss4m")
    assert "Xss4m" not in options["spark.executor.extraJavaOptions"]


@pytest.mark.usefixtures("no_spark")
def test_what_sparks_file_of_defaults_says_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "# ours",
        "",
        "spark.redaction.regex   mine or yours",
        "spark.driver.extraJavaOptions=-Xss4m -Xms1g",
    ]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    options = options_of(configure(builder_with()))
    assert "spark.redaction.regex" not in options
    assert options["spark.driver.extraJavaOptions"].endswith("get=false -Xss4m -Xms1g")
    assert options["spark.executor.extraJavaOptions"].endswith("get=false")


@pytest.mark.usefixtures("no_spark")
def test_a_cluster_keeps_its_python_and_its_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/environment/bin/python")
    options = options_of(configure(builder_with(**{"spark.master": "spark://host:7077"})))
    assert "spark.sql.streaming.checkpointFileManagerClass" not in options
    assert os.environ["PYSPARK_PYTHON"] == "/environment/bin/python"
    assert os.environ["PENSTOCK_SPARK_SESSION"] == ""


@pytest.mark.usefixtures("no_spark")
def test_the_builder_of_a_remote_session_stays_as_it_is() -> None:
    builder = builder_with(**{"spark.remote": "sc://host:15002"})
    assert options_of(configure(builder)) == {"spark.remote": "sc://host:15002"}


def test_a_running_spark_is_not_configured_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    builder = builder_with(**{"spark.master": "local"})
    with pytest.warns(UserWarning, match="before the first session"):
        configure(builder)
    assert options_of(builder) == {"spark.master": "local"}
