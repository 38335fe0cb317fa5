"""Laws of the source itself: layers, import cost, size of modules, words that mark unfinished work."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
OPTIONAL = ("numpy", "numba", "pyarrow", "pyspark", "pandas", "matplotlib")


@pytest.mark.parametrize(
    "module", ["penstock", "penstock.broker", "penstock.cloudevents", "penstock.protocol.api"]
)
def test_import_loads_none_of_the_optional_libraries(module: str) -> None:
    code = f"import sys, {module}; print(*(n for n in {OPTIONAL!r} if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_broker_that_serves_loads_none_of_the_optional_libraries() -> None:
    code = (
        "import sys, socket\n"
        "from penstock import Broker\n"
        "with Broker() as broker:\n"
        "    socket.create_connection(('127.0.0.1', broker.port)).close()\n"
        f"    print(*(n for n in {OPTIONAL!r} if n in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_public_name_exists() -> None:
    import penstock

    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
    assert set(penstock.__all__) <= set(dir(penstock))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = penstock.nonsense


def test_imports_point_one_way() -> None:
    script = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([script, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_module_opens_with_its_promise_and_stays_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "messages":
        return
    assert not text or text.startswith(('"""', 'r"""')), "say what the module promises"
    assert text.count("\n") <= 700, "a module this long usually holds two nouns"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_left_for_later(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b|NotImplementedError|for now\b", text)
    assert found == []


def test_the_picture_of_the_layers_is_that_of_the_import_rules() -> None:
    """If this fails, run ``python tools/draw_layers.py``."""
    spec = importlib.util.spec_from_file_location("draw_layers", ROOT / "tools" / "draw_layers.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PICTURE.read_text(encoding="utf-8") == tool.picture()
