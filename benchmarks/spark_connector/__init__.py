"""Fetch Spark's JVM Kafka connector with Maven, for comparisons with Penstock's data source.

The artefact `spark-token-provider-kafka-0-10`, which it needs, is not published for this release. The Java
files in this directory replace it, without delegation tokens.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark

CONNECTOR = "4.2.0"
"""The Spark release of the connector that is fetched by default."""

ARTEFACTS = (
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.0",
)
REPOSITORY = Path.home() / ".m2" / "repository"


def fetched_jar(artefact: str) -> Path:
    """Return the jar of an artefact, given as ``group:name:version``, after fetching it if necessary.

    Raises:
        RuntimeError: Maven did not fetch it.
    """
    group, name, version = artefact.split(":")
    jar = REPOSITORY.joinpath(*group.split("."), name, version, f"{name}-{version}.jar")
    if not jar.exists():
        command = ["mvn", "-q", "dependency:get", f"-Dartifact={artefact}", "-Dtransitive=false"]
        if subprocess.run(command, capture_output=True, check=False, timeout=300).returncode != 0:
            raise RuntimeError(f"Maven did not fetch {artefact}")
    return jar


def connector_jars(directory: Path, release: str = CONNECTOR) -> list[Path]:
    """Return the jars Spark needs for the format `kafka`; compile the replaced classes into `directory`.

    `release` is the release of the connector and of the Spark that uses it.

    Raises:
        RuntimeError: Maven or a Java compiler is missing, or the artefacts cannot be fetched.
    """
    for program in ("mvn", "javac", "jar"):
        if shutil.which(program) is None:
            raise RuntimeError(f"the JVM connector needs {program}")
    connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{release}"
    jars = [fetched_jar(artefact) for artefact in (connector, *ARTEFACTS)]
    sources = sorted(map(str, Path(__file__).parent.glob("*.java")))
    classes = directory / "classes"
    class_path = f"{Path(pyspark.__file__).parent}/jars/*"
    subprocess.run(["javac", "-nowarn", "-cp", class_path, "-d", classes, *sources], check=True)
    stand_ins = directory / "stand-ins.jar"
    subprocess.run(["jar", "cf", stand_ins, "-C", classes, "."], check=True)
    return [*jars, stand_ins]
