"""Tests that the image, the compose file and the systemd unit start brokers that answer.

Their commands run on this machine, without containers.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from free_ports import free_ports

ROOT = Path(__file__).resolve().parents[1]
PENSTOCK = [sys.executable, "-m", "penstock"]


def here(words: list[str], data: Path, ports: dict[str, int]) -> list[str]:
    """Return an image's command changed for this machine: another directory, other ports, only loopback."""
    found = [str(data) if word in ("/data", "/var/lib/penstock") else word for word in words]
    for port, free in ports.items():
        found = [re.sub(rf":{port}\b", f":{free}", word) for word in found]
    found = [word.replace("0.0.0.0", "127.0.0.1").replace("//broker:", "//localhost:") for word in found]
    return [*PENSTOCK, *found[1:]] if found[0].endswith("penstock") else found


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(30) == 0


def wait_until_healthy(check: list[str]) -> None:
    deadline = time.monotonic() + 60
    while True:
        done = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.1)


def dockerfile() -> dict[str, Any]:
    """Return a dict from instruction to arguments of the Dockerfile's last stage, if they are JSON."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    stage = text[text.rindex("\nFROM ") :]
    found = {}
    for name, words in re.findall(r"^(ENTRYPOINT|CMD|HEALTHCHECK)\b[^\[\n]*(\[.*\])$", stage, re.MULTILINE):
        found[name] = json.loads(words)
    return found


def test_the_image_serves_and_knows_when_it_does(tmp_path: Path) -> None:
    said = dockerfile()
    [port] = free_ports(1)
    ports = {"9092": port}
    check = here(said["HEALTHCHECK"], tmp_path, ports)
    sick = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
    assert sick.returncode != 0
    command = here([*said["ENTRYPOINT"], *said["CMD"]], tmp_path, ports)
    with running([*command, "--port", str(port)]):
        wait_until_healthy(check)
    assert (tmp_path / "meta.properties").exists()


def test_the_context_of_the_image_holds_what_the_wheel_needs() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line[:1] == "!"
    }
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = {"src", "pyproject.toml", "constraints.txt"}
    named |= set(re.findall(r'^readme = "(.+)"$', project, re.MULTILINE)) | {"LICENSE"}
    named |= {path.partition("/")[0] for path in re.findall(r'^path = "(.+)"$', project, re.MULTILINE)}
    assert named == kept
    assert all((ROOT / name).exists() for name in kept)


def test_both_addresses_of_the_compose_file_answer(tmp_path: Path) -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["broker"]
    inside, outside = free_ports(2)
    ports = {"9092": inside, "9094": outside}
    assert service["ports"] == ["127.0.0.1:9094:9094"]
    command = here([*dockerfile()["ENTRYPOINT"], *service["command"]], tmp_path, ports)
    check = here(service["healthcheck"]["test"][1:], tmp_path, ports)
    with running(command):
        wait_until_healthy(check)
        for port in (inside, outside):
            listed = [*PENSTOCK, "broker", "list", "-b", f"127.0.0.1:{port}", "--json"]
            done = subprocess.run(listed, capture_output=True, text=True, timeout=60, check=True)
            assert json.loads(done.stdout)["port"] == port


def test_no_page_installs_the_other_project_of_that_name() -> None:
    """On PyPI, the name penstock alone belongs to another project.

    With an extra, the name is used where Penstock is already installed.
    """
    pages = [ROOT / "packaging" / "penstock.service", ROOT / "Dockerfile", *ROOT.glob("*.md")]
    for page in [*pages, *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"pip install (?:-\S+ )*[\"']?penstock[\"']?(?=\s|$|`)", text), page


def test_the_unit_starts_a_broker(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((ROOT / "packaging" / "penstock.service").read_text(encoding="utf-8"))
    words = [word for word in shlex.split(unit["Service"]["ExecStart"]) if word != "$OPTIONS"]
    [port] = free_ports(1)
    with running([*here(words, tmp_path, {}), "--port", str(port)]):
        wait_until_healthy([*PENSTOCK, "broker", "list", "-b", f"127.0.0.1:{port}"])
    assert (tmp_path / "meta.properties").exists()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """The program's path is replaced, since that path does not exist on this machine."""
    text = (ROOT / "packaging" / "penstock.service").read_text(encoding="utf-8")
    copy = tmp_path / "penstock.service"
    copy.write_text(text.replace("/opt/penstock/bin/penstock", sys.executable), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
    )
    assert "penstock.service" not in done.stderr, done.stderr
