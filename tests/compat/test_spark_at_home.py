"""The Spark examples run: with spark-submit, Spark Connect, a pipeline, a notebook, and as an image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from compat.peers import free_ports, python_program, until
from compat.spark_standalone import SPARK_HOME, running_cluster, spark_environment
from container_file import commands_of, instructions_of
from penstock import Admin, Broker, read_topic, write_topic

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "spark"
QUICK = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
PROGRAM_S = 600.0
ROWS = 100
COUNTS = "sensor-0 25\nsensor-1 25\nsensor-2 25\nsensor-3 25\n"


def readings(first: int) -> pa.Table:
    numbers = range(first, first + ROWS)
    return pa.table(
        {
            "key": pa.array([b"sensor-%d" % (n % 4) for n in numbers], pa.binary()),
            "value": pa.array([b"%d" % n for n in numbers], pa.binary()),
        }
    )


@pytest.fixture
def brokers() -> Iterator[str]:
    """Provide a broker with a topic of readings and an empty topic for their copy."""
    with Broker(log_retention_ms=-1) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            for topic in ("readings", "copy"):
                admin.create_topic(topic, partitions=2)
        write_topic(readings(0), "readings", broker.bootstrap_servers)
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place), str(ROOT)], {})
    return next(place.glob("penstock-*.whl"))


@pytest.fixture(scope="module")
def spark_python() -> str:
    """Provide a Python with the packages for Spark Connect and notebooks, and those of this environment."""
    python = python_program("spark-at-home")
    share_libraries(python)
    return str(python)


def share_libraries(python: Path) -> Path:
    """Let an environment import this environment's libraries, except editable installs.

    Returns the environment's directory for packages.
    """
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    (place / "shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return place


def link_libraries(python: Path) -> None:
    """Link this environment's libraries into another one, except Penstock, PySpark's metadata and pip."""
    place = share_libraries(python)
    (place / "shared.pth").unlink()
    for library in Path(sysconfig.get_path("purelib")).iterdir():
        name = library.name.lower()
        if "penstock" not in name and not name.startswith(("pip", "pyspark-", "__pycache__")):
            link = place / library.name
            if not link.exists():
                link.symlink_to(library)


def run(command: list[str], environment: dict[str, str], directory: Path | None = None) -> str:
    """Run a program; return its output. Fail the test with the whole output if the program fails."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def environment_of(wheel: Path, directory: Path) -> Path:
    """Make an environment with the wheel's content and this environment's libraries.

    Returns the path of its Python.
    """
    run([sys.executable, "-m", "venv", "--without-pip", str(directory)], {})
    python = directory / "bin" / "python"
    shutil.unpack_archive(wheel, share_libraries(python), "zip")
    return python


@pytest.mark.parametrize("way", ["archive", "py-files"])
def test_a_job_is_submitted_to_a_cluster_that_does_not_have_the_package(
    way: str, brokers: str, wheel: Path, tmp_path: Path
) -> None:
    if way == "archive":
        python = environment_of(wheel, tmp_path / "environment")
        archive = tmp_path / "environment.tar.gz"
        run(["tar", "-czf", str(archive), "-C", str(tmp_path / "environment"), "."], {})
        options = ["--archives", f"{archive}#environment"]
        environment = spark_environment("./environment/bin/python", None)
        environment["PYSPARK_DRIVER_PYTHON"] = str(python)
    else:
        # Where nothing of this package is installed, as on a cluster.
        bare = tmp_path / "bare"
        run([sys.executable, "-m", "venv", "--without-pip", str(bare)], {})
        share_libraries(bare / "bin" / "python")
        package = shutil.copy(wheel, tmp_path / "penstock.zip")
        options = ["--py-files", str(package)]
        environment = spark_environment(str(bare / "bin" / "python"), None)
    environment["PYTHONNOUSERSITE"] = "1"
    with running_cluster(tmp_path, spark_environment(sys.executable, None), workers=1) as cluster:
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.master, *QUICK, *options]
        command += ["--conf", "spark.executor.memory=512m"]
        command += ["--properties-file", str(EXAMPLES / "spark-defaults.conf"), str(EXAMPLES / "job.py")]
        command += [brokers, "readings", "copy", str(tmp_path / "checkpoint")]
        assert "copied 100 records" in run(command, environment, tmp_path)
    copied = read_topic("copy", brokers, isolation="read_committed")["value"].to_pylist()
    assert sorted(map(int, copied)) == list(range(ROWS))


@contextmanager
def connect_server(python: str, directory: Path) -> Iterator[str]:
    """Run a Spark Connect server whose Python has Penstock installed; yield its address."""
    (port,) = free_ports(1)
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", *QUICK]
    command += ["--properties-file", str(EXAMPLES / "spark-defaults.conf")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    # Runs of a pipeline find the tables of those before them in a catalog that stays.
    command += ["--conf", "spark.sql.catalogImplementation=hive", "spark-internal"]
    log = directory / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, env=spark_environment(python), cwd=directory, stdout=output, stderr=output
        )
    try:
        until(
            lambda: server.poll() is not None or "Spark Connect server started" in log.read_text(), str(log)
        )
        assert server.poll() is None, log.read_text()[-5000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def test_a_client_and_a_pipeline_use_a_server_of_spark_connect(
    brokers: str, spark_python: str, tmp_path: Path
) -> None:
    """The Spark Connect client needs no Penstock package.

    Each run of the pipeline reads the records added since its last run.
    """
    remote = {"PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}
    with connect_server(spark_python, tmp_path) as server:
        told = run([spark_python, str(EXAMPLES / "connect.py"), server, brokers, "readings"], remote)
        assert told == f"{COUNTS}streamed 100\n"

        pipeline = tmp_path / "pipeline"
        shutil.copytree(EXAMPLES / "pipeline", pipeline)
        spec = pipeline / "spark-pipeline.yml"
        text = spec.read_text().replace("localhost:9092", brokers)
        spec.write_text(text.replace("/tmp/readings-pipeline", str(tmp_path / "storage")))
        command = [
            str(SPARK_HOME / "bin" / "spark-pipelines"),
            "--remote",
            server,
            "run",
            "--spec",
            str(spec),
        ]
        look = (
            "import sys\nfrom pyspark.sql import SparkSession\n"
            f"spark = SparkSession.builder.remote({server!r}).getOrCreate()\n"
            "print(spark.table('readings').count(), [tuple(row) for row in "
            "spark.table('hottest').orderBy('key').collect()])\n"
        )
        environment = {**spark_environment(spark_python, None), "PYTHONWARNINGS": "ignore"}
        for first in (0, ROWS):
            if first:
                write_topic(readings(first), "readings", brokers)
            run(command, environment, pipeline)
            found = run([spark_python, "-c", look], remote)
            hottest = [(f"sensor-{n}", "99" if n == 3 else str(96 + n)) for n in range(4)]
            assert found == f"{first + ROWS} {hottest}\n"


def test_a_notebook_runs_from_top_to_bottom(brokers: str, spark_python: str, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels" / "python3"
    kernels.mkdir(parents=True)
    kernel = {"argv": [spark_python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    (kernels / "kernel.json").write_text(
        json.dumps({**kernel, "display_name": "Python 3", "language": "python"})
    )
    program = (
        "import sys, nbformat\nfrom nbclient import NotebookClient\n"
        "notebook = nbformat.read(sys.argv[1], as_version=4)\n"
        "NotebookClient(notebook, timeout=500, kernel_name='python3').execute()\n"
        "nbformat.write(notebook, sys.argv[2])\n"
    )
    environment = {**spark_environment(spark_python), "BROKERS": brokers, "TOPIC": "readings"}
    environment |= {"JUPYTER_PATH": str(tmp_path), "HOME": str(tmp_path)}
    result = tmp_path / "result.ipynb"
    run([spark_python, "-c", program, str(EXAMPLES / "notebook.ipynb"), str(result)], environment)
    document = json.loads(result.read_text())
    outputs = [output for cell in document["cells"] for output in cell.get("outputs", [])]
    told = "".join(
        "".join(output.get("text") or output.get("data", {}).get("text/plain", "")) for output in outputs
    )
    assert "sensor-3" in told
    assert "penstock[readings]" in told
    assert "100 rows, 0 to go" in told


def test_the_commands_of_the_image_run(wheel: Path, tmp_path: Path) -> None:
    """The Dockerfile's commands, except those with apt-get, run in a separate environment."""
    place = tmp_path / "python"
    run([sys.executable, "-m", "venv", str(place)], {})
    link_libraries(place / "bin" / "python")
    home = tmp_path / "spark"
    (home / "python" / "lib").mkdir(parents=True)
    (home / "python" / "pyspark").symlink_to(SPARK_HOME)
    for library in (SPARK_HOME / "python" / "lib").glob("py4j-*-src.zip"):
        shutil.copy(library, home / "python" / "lib")
    environment = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "WHEELS": str(wheel.parent)}
    environment |= {"SPARK_HOME": str(home), "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    commands = commands_of(instructions_of((EXAMPLES / "Dockerfile").read_text()))
    own = [command for command in commands if "apt-get" not in command]
    assert len(own) == 2
    told = [run(["sh", "-c", command], environment) for command in own]
    assert told[-1].strip() == "penstock"
