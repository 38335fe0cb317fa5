"""The documentation site builds without a warning, and describes every option and every command."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.topic_keys import TOPIC_KEYS
from penstock.cli.commands import penstock
from penstock.client.options import documented

pytestmark = [pytest.mark.compat, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site and provide its directory.

    Sphinx warnings, such as broken links, make the build fail.
    """
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "tools" / "build_site.py"), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    return place


def text_of(page: Path) -> str:
    """Return the visible text of a page, without whitespace."""
    found = re.sub(r"<(script|style).*?</\1>|<[^>]+>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s", "", html.unescape(found))


def every_command(command: click.Command, path: str) -> list[str]:
    found = [path]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                found += every_command(below, f"{path} {name}")
    return found


def test_every_option_is_on_its_page(site: Path) -> None:
    reference = site / "docs" / "reference"
    for page, names in {
        "client-options": {*documented("ProducerOptions"), *documented("ConsumerOptions")},
        "broker-options": set(BROKER_KEYS),
        "topic-options": set(TOPIC_KEYS),
    }.items():
        text = text_of(reference / f"{page}.html")
        assert [name for name in sorted(names) if name not in text] == []


def test_every_command_is_on_its_page(site: Path) -> None:
    text = text_of(site / "docs" / "reference" / "commands.html")
    commands = every_command(penstock, "penstock")
    assert len(commands) > 40
    assert [name for name in commands if name.replace(" ", "") not in text] == []


def test_the_api_has_the_methods_with_their_texts(site: Path) -> None:
    text = text_of(site / "docs" / "api" / "penstock.client.html")
    for name in ("subscribe", "poll", "send", "flush", "transaction", "create_topic", "end_transaction"):
        assert f"{name}(" in text


def test_every_page_of_the_repository_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index[index.index("(") + 1 : index.rindex(")")])
    pages = {page.relative_to(ROOT).with_suffix("").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    pages = {page for page in pages if not page.startswith("docs/site/")} | {"README", "ARCHITECTURE"}
    assert pages <= set(found["docnames"])
    assert "idempot" in found["terms"]
