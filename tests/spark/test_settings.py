from __future__ import annotations

import os

import pytest

from penstock.errors import ConfigError
from penstock.spark.runtime.session import checkpoint_manager, local_cores, session, settings_for


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
