"""Checks of the Spark examples without running Spark; tests/compat/test_spark_at_home.py runs them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from container_file import commands_of, copied_of, instructions_of, words_of
from penstock.cli import spark

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "spark"


def test_settings_for_clusters_are_those_that_the_command_writes() -> None:
    done = CliRunner().invoke(spark.command, ["settings"])
    assert done.exit_code == 0, done.output
    assert (EXAMPLES / "spark-defaults.conf").read_text() == done.output


def test_the_image_copies_what_there_is_and_ends_without_rights_of_root() -> None:
    instructions = instructions_of((EXAMPLES / "Dockerfile").read_text())
    for path in copied_of(instructions):
        # The wheel is built before the image.
        assert path == "dist/penstock-*.whl" or (ROOT / path).is_file(), path
    for word, rest in instructions:
        assert word != "FROM" or ":latest" not in rest
    assert [rest for word, rest in instructions if word == "USER"][-1].isdigit()
    entries = [words_of(rest) for word, rest in instructions if word == "ENTRYPOINT"]
    assert entries == [["/opt/entrypoint.sh"]]


def test_commands_of_the_image_are_commands_of_the_shell() -> None:
    commands = commands_of(instructions_of((EXAMPLES / "Dockerfile").read_text()))
    assert len(commands) == 3
    for command in commands:
        done = subprocess.run(["sh", "-n"], input=command, text=True, capture_output=True)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize("text", ["RUM true", "RUN", "FROM a\nnothing here"])
def test_what_is_no_container_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no instruction"):
        instructions_of(text)


def test_programs_and_cells_of_the_notebook_are_python() -> None:
    for path in EXAMPLES.rglob("*.py"):
        ast.parse(path.read_text(), str(path))
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code
    for source in code:
        ast.parse(source)
    assert not any(cell.get("outputs") for cell in cells), "outputs of a run do not belong into the file"


def test_the_page_of_the_examples_names_each_of_them() -> None:
    named = set(re.findall(r"\]\(([\w./-]+)\)", (EXAMPLES / "README.md").read_text()))
    files = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()}
    files = {path.split("/")[0] + "/" if "/" in path else path for path in files} - {
        "README.md",
        "__pycache__/",
    }
    assert files <= named, files - named
