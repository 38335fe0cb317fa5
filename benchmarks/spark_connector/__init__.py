"""The Kafka connector of the JVM, to be measured beside ours: fetched with Maven, stand-ins compiled.

Its artefact `spark-token-provider-kafka-0-10` is not published for this release; the Java files here take
its place, without delegation tokens.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark

CONNECTOR = "4.2.0"
"""The release of Spark whose connector is fetched unless another one is asked for."""

ARTEFACTS = (
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.0",
)
REPOSITORY = Path.home() / ".m2" / "repository"


def fetched_jar(artefact: str) -> Path:
    """The jar of an artefact, as ``group:name:version``.

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
    """The jars Spark needs for the format `kafka`; stand-ins are compiled into `directory`.

    `release` is that of the connector, and of the Spark that it is used with.

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
