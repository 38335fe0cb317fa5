"""Tests of rules for the source itself: layers, import cost, size of modules and packages, and wording."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import grimp
import pytest

import house_debts
from for_each import for_each

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "penstock"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
WRITTEN = [path for path in SOURCES if path.parent != PACKAGE / "protocol" / "messages"]
"""The paths of all modules that are not generated."""
ROOMS = sorted({path.parent for path in SOURCES if path.is_relative_to(PACKAGE)} - {PACKAGE})
OPTIONAL = ("numpy", "pyarrow", "pyspark", "pandas", "matplotlib")


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


NOT_FOR_A_START = (
    "concurrent.futures.thread",
    "cramjam",
    "ctypes",
    "ipaddress",
    "penstock.broker.cluster",
    "penstock.broker.config.alterations",
    "penstock.broker.config.inert_keys",
    "penstock.broker.config.release_settings",
    "penstock.broker.config.resource_keys",
    "penstock.broker.config.security_settings",
    "penstock.broker.faults",
    "penstock.broker.groups",
    "penstock.broker.handlers.postponed_records",
    "penstock.broker.network.metrics",
    "penstock.broker.network.metrics_server",
    "penstock.broker.partitions.key_validation",
    "penstock.broker.partitions.producers.producer_recovery",
    "penstock.broker.partitions.up_conversion",
    "penstock.broker.partitions.upkeep.cleaner",
    "penstock.broker.partitions.upkeep.flusher",
    "penstock.broker.replication",
    "penstock.broker.requests.quotas",
    "penstock.broker.requests.release_profiles",
    "penstock.broker.requests.request_limits",
    "penstock.broker.requests.throttling",
    "penstock.broker.transactions",
    "penstock.client",
    "penstock.cloudevents",
    "penstock.common.threads",
    "penstock.log.compaction",
    "penstock.log.segments.salvage",
    "penstock.protocol.inspect",
    "penstock.records.compression.gzip",
    "penstock.records.compression.lz4",
    "penstock.records.compression.snappy",
    "penstock.records.compression.zstd",
    "penstock.records.kernels",
    "penstock.records.legacy",
    "penstock.security",
    "penstock.testing",
    "penstock.v07",
    "platform",
    "tempfile",
    "urllib",
    "uuid",
)
"""Modules that a broker needs only for some requests, settings or errors, and loads on first use."""

LOADED_BY_A_BROKER = """
import sys
from penstock.broker.broker import Broker
from penstock.broker.handlers import import_common
with Broker({options}) as broker:
    import_common()
    print(*sys.modules)
"""


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_broker_that_starts_loads_nothing_that_few_need(in_memory: bool, tmp_path: Path) -> None:
    """Each module adds 0.2 ms to a start, and memory for as long as the broker runs."""
    options = "" if in_memory else f"data_dir={str(tmp_path / 'data')!r}"
    code = LOADED_BY_A_BROKER.format(options=options)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "penstock.broker.handlers.produce" in loaded
    rooms = {".".join(name.split(".")[:i]) for name in loaded for i in range(1, name.count(".") + 2)}
    assert rooms & set(NOT_FOR_A_START) == set()
    if in_memory:
        of_disks = {
            "penstock.common.atomic_files",
            "penstock.log.disk",
            "penstock.log.directory.identity_files",
        }
        assert rooms & of_disks == set()


def test_what_a_start_does_not_need_exists() -> None:
    """A renamed module in `NOT_FOR_A_START` would never be found in a start, and so never be reported."""
    for name in NOT_FOR_A_START:
        assert importlib.util.find_spec(name) is not None, name


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


TYPED_UPWARDS = {
    "penstock.model -> penstock.cloudevents.event",
    "penstock.model -> penstock.cloudevents.outcome",
}
"""Imports of types that may point to a higher layer; pyproject.toml gives the reasons."""


def layer_contracts() -> list[dict[str, Any]]:
    """Return the layer contracts of import-linter in pyproject.toml."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return [contract for contract in rules["contracts"] if contract["type"] == "layers"]


def in_layers(contracts: list[dict[str, Any]]) -> set[str]:
    """Return the packages and modules that the layer contracts name."""
    return {
        f"{container}.{name}"
        for contract in contracts
        for container in contract["containers"]
        for layer in contract["layers"]
        for name in re.findall(r"\w+", layer)
    }


def test_every_room_is_in_a_contract_of_layers() -> None:
    """A new package must be added to the contract of its parent package, or to the top-level one."""
    assert in_layers([{"containers": ["a.b"], "layers": ["c", "d | (e)", "f : g"]}]) == {
        "a.b.c",
        "a.b.d",
        "a.b.e",
        "a.b.f",
        "a.b.g",
    }
    rooms = {".".join(room.relative_to(PACKAGE.parent).parts) for room in ROOMS}
    assert rooms - in_layers(layer_contracts()) == set()


def test_contracts_of_layers_have_no_holes() -> None:
    """Every module of a package with layers must be in one of them.

    Imports for types count as well.
    """
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert rules["exclude_type_checking_imports"] is False
    assert [each["name"] for each in layer_contracts() if not each.get("exhaustive")] == []
    left_out = [name for each in layer_contracts() for name in each.get("exhaustive_ignores", ())]
    assert left_out == ["__main__"]
    ignored = {line for each in rules["contracts"] for line in each.get("ignore_imports", ())}
    assert ignored == TYPED_UPWARDS


def hold(broken: set[str], debts: frozenset[str]) -> None:
    """Check that exactly the violations in `debts` exist: none is new, and none was corrected."""
    assert broken - debts == set(), "new"
    assert debts - broken == set(), "mended: take it off the list in tests/house_debts.py"


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Return a dict from each module to its direct imports, those for types included.

    Generated modules are left out.
    """
    graph = grimp.build_graph("penstock", exclude_type_checking_imports=False, cache_dir=None)
    modules = {name for name in graph.modules if not name.startswith("penstock.protocol.messages")}
    return {name: graph.find_modules_directly_imported_by(name) & modules for name in modules}


BY_TEXT = re.compile(r'\bimport_module\("(penstock[\w.]*)"\)')
"""A pattern for imports with the module's name in a string, which import tools do not find."""


def imported_by_text(modules: set[str]) -> dict[str, set[str]]:
    """Return a dict from each module to those it imports with a name in a string."""
    found = {}
    for path in WRITTEN:
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        found[name] = set(BY_TEXT.findall(path.read_text(encoding="utf-8"))) & modules
    return found


def circles(imports: dict[str, set[str]]) -> set[str]:
    """Return the modules that import themselves, directly or through others."""
    inside = set()
    for start in imports:
        reached: set[str] = set()
        waiting = list(imports[start])
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(imports[name])
        if start in reached:
            inside.add(start)
    return inside


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == {"a", "b", "c"}


def test_no_import_circle_of_modules(imports: dict[str, set[str]]) -> None:
    assert len(imports) > 300
    by_text = imported_by_text(set(imports))
    assert by_text["penstock.errors"], "the pattern finds what it is for"
    every = {name: imported | by_text.get(name, set()) for name, imported in imports.items()}
    hold(circles(every), house_debts.IN_IMPORT_CIRCLES)


def test_no_import_circle_of_rooms(imports: dict[str, set[str]]) -> None:
    """A room is a package without subpackages; a module beside subpackages counts as its own room."""
    packages = {name.rpartition(".")[0] for name in imports} & set(imports)
    with_rooms = {name.rpartition(".")[0] for name in packages}

    def room(module: str) -> str:
        parent = module.rpartition(".")[0]
        return module if module in packages or not parent or parent in with_rooms else parent

    rooms: dict[str, set[str]] = {}
    for module, imported in imports.items():
        rooms.setdefault(room(module), set()).update({room(name) for name in imported} - {room(module)})
    hold(circles(rooms), house_debts.ROOMS_IN_CIRCLES)


@for_each(WRITTEN)
def test_module_opens_with_its_promise(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text or text.startswith(('"""', 'r"""')), "say what the module promises"


def test_no_module_has_more_than_800_lines() -> None:
    """A module that is longer usually has two subjects, and should be divided."""
    long = {
        path.relative_to(PACKAGE).as_posix()
        for path in WRITTEN
        if path.is_relative_to(PACKAGE) and path.read_text(encoding="utf-8").count("\n") > 800
    }
    hold(long, house_debts.LONGER_THAN_800_LINES)


def test_no_room_has_more_than_16_modules() -> None:
    counts = {room: len([path for path in room.glob("*.py") if path.name != "__init__.py"]) for room in ROOMS}
    full = {room.relative_to(PACKAGE).as_posix() for room, count in counts.items() if count > 16}
    assert full == {"broker/handlers", "cli", "protocol/messages"}


@for_each(ROOMS)
def test_every_room_says_in_one_line_what_it_is_for(room: Path) -> None:
    doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    assert doc is not None
    first, _, rest = doc.partition("\n")
    assert first.endswith("."), "the first line is a sentence, which the map in ARCHITECTURE.md shows"
    assert rest == "" or rest.startswith("\n")


PEOPLE = re.compile(
    r"\b(?:who(?:m?ever)|nobody|somebody|anybody|everybody|someone|anyone|(?<!allow\.)everyone)\b",
    re.IGNORECASE,
)


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement at any depth, without searching expressions, which contain none."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            if isinstance(node, ast.stmt):
                yield node
            yield from statements(node)


@cache
def named(source: str) -> list[ast.ClassDef | ast.Import | ast.ImportFrom]:
    """Return a module's imports and classes, without the classes' bodies to save memory.

    The list is empty for a module without classes.
    """
    if not re.search(r"\bclass\b", source):
        return []
    kept = (ast.ClassDef, ast.Import, ast.ImportFrom)
    found = [node for node in statements(ast.parse(source)) if isinstance(node, kept)]
    for node in found:
        if isinstance(node, ast.ClassDef):
            node.body = []
    return found


def bases_of(modules: dict[str, str]) -> dict[str, set[str]]:
    """Return a dict from each class to its base classes, all with their full names."""
    found: dict[str, set[str]] = {}
    for module, source in modules.items():
        nodes = named(source)
        full: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                full[node.name] = f"{module}.{node.name}"
            elif isinstance(node, ast.ImportFrom):
                full |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Import):
                full |= {each.asname or each.name: each.name for each in node.names}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).partition("[")[0].partition(".") for base in node.bases]
                found[full[node.name]] = {full.get(name, name) + dot + rest for name, dot, rest in names}
    return found


def cut_by_inheritance(bases: dict[str, set[str]]) -> set[str]:
    """Return the classes whose only subclass is in another module.

    Protocols are contracts without code, and errors are bases that callers catch: both are permitted.
    """
    subclasses: dict[str, list[str]] = {}
    for name, above in bases.items():
        for base in above & bases.keys():
            subclasses.setdefault(base, []).append(name)
    return {
        base
        for base, (first, *others) in subclasses.items()
        if not others
        and first.rpartition(".")[0] != base.rpartition(".")[0]
        and "typing.Protocol" not in bases[base]
        and not base.endswith("Error")
    }


def test_classes_cut_by_inheritance_are_found() -> None:
    upper = "class Cut: ...\nclass Shared: ...\nclass Near: ...\nclass Far(Near): ...\nclass AnyError: ..."
    lower = "import a\nfrom a import Cut as C\nclass Whole(C[int], a.Shared): ...\nclass Other(a.Shared): ..."
    lower += "\nclass OneError(a.AnyError): ..."
    assert cut_by_inheritance(bases_of({"a": upper, "b": lower})) == {"a.Cut"}


def test_a_class_is_read_in_one_place() -> None:
    """No class has its only subclass in another module, since the parts would have to be read together."""
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in WRITTEN
    }
    hold(cut_by_inheritance(bases_of(modules)), house_debts.CUT_BY_INHERITANCE)


ALIKE = "broker.groups."
"""The prefix of packages that may share class names: each group protocol has its `State` and others."""


def named_twice(modules: dict[str, str]) -> dict[str, set[str]]:
    """Return a dict from the name of each public class in several modules to these modules."""
    homes: dict[str, set[str]] = {}
    for module, text in modules.items():
        for node in named(text):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(module)
    return {
        name: rooms
        for name, rooms in homes.items()
        if len(rooms) > 1 and not all(room.startswith(ALIKE) for room in rooms)
    }


def test_a_name_of_a_class_means_one_thing() -> None:
    shallow = "class A: ...\nclass _B: ...\nclass C: ..."
    deep = "if TYPE_CHECKING:\n    class A: ...\ndef f():\n    class _B: ...\n    class C: ..."
    assert named_twice({"a": shallow, "b": deep}) == {"A": {"a", "b"}, "C": {"a", "b"}}
    modules = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path.read_text("utf-8")
        for path in WRITTEN
        if path.is_relative_to(PACKAGE)
    }
    assert named_twice(modules) == {}


@cache
def words(text: str) -> str:
    """Return the comments and strings of a module, including docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spoken = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    return "\n".join(token.string for token in tokens if token.type in spoken)


def said(path: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return what a pattern finds in a module's comments and strings.

    A module whose source has no match is not tokenized.
    """
    text = path.read_text(encoding="utf-8")
    return pattern.findall(words(text)) if pattern.search(text) else []


def test_programs_are_not_described_as_people() -> None:
    """Comments say client, broker or caller instead of words such as "nobody".

    The Kafka setting ``allow.everyone.if.no.acl.found`` is permitted.
    """
    assert PEOPLE.findall(words("nobody = 1  # whoever\n'''Nobody.'''\n")) == ["whoever", "Nobody"]
    people = {
        path.relative_to(PACKAGE).as_posix()
        for path in WRITTEN
        if path.is_relative_to(PACKAGE) and said(path, PEOPLE)
    }
    hold(people, house_debts.TELLS_OF_PEOPLE)


PERSONIFIED = re.compile(
    r"\b(?:told|tells?|hears?|heard|wants?|knows|knew|believe[sd]?|forgets?|forgot|forgotten|remember(?:s|ed)?)\b"
    r"|\b(?:whatever|whichever|of old)\b|\bsay whether\b",
    re.IGNORECASE,
)
"""A pattern for verbs that describe programs as people, and for vague words."""

LEANING = re.compile(r'"""(?:As (?:above|in|`)|The same[ ,.])')
"""A pattern for the beginnings of docstrings that refer to another docstring."""


def test_programs_neither_speak_nor_think() -> None:
    """Comments use terms such as "returns", "has" or "answers" for programs."""
    assert PERSONIFIED.findall("It knows what it was told, whatever you want.") == [
        "knows",
        "told",
        "whatever",
        "want",
    ]
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {word}"
        for path in WRITTEN
        if path.is_relative_to(PACKAGE)
        for word in said(path, PERSONIFIED)
    }
    assert found == set()


def test_docstrings_stand_alone() -> None:
    assert LEANING.search('"""As in `Log`."""')
    assert not LEANING.search('"""Assign partitions."""')
    leaning = {
        f"{path.relative_to(PACKAGE).as_posix()}: {text}"
        for path in WRITTEN
        if path.is_relative_to(PACKAGE)
        for text in said(path, LEANING)
    }
    assert leaning == set()


@for_each(SOURCES)
def test_nothing_is_left_for_later(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b|NotImplementedError|for now\b", text)
    assert found == []


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_layers_is_that_of_the_import_rules() -> None:
    """The picture is current; ``python tools/draw_layers.py`` updates it."""
    draw_layers = tool("draw_layers")
    assert draw_layers.PICTURE.read_text(encoding="utf-8") == draw_layers.picture()


def test_the_map_names_exactly_the_rooms_of_the_tree() -> None:
    """The map is current; ``python tools/draw_map.py`` updates it."""
    draw_map = tool("draw_map")
    page = draw_map.PAGE.read_text(encoding="utf-8")
    assert draw_map.with_map(page) == page
    shown = re.findall(r"^ *([a-z0-9_]+)/ ", draw_map.current_map(page), re.MULTILINE)
    assert sorted(shown) == sorted(room.name for room in ROOMS)
    assert len(draw_map.current_map(page).splitlines()) <= 98, "one page"


def test_the_documents_name_modules_that_exist() -> None:
    """Paths such as ``log/contract.py`` exist in the package or in the repository."""
    missing = set()
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        (page, word)
        for page in pages
        for word in re.findall(
            r"`([a-z0-9_]+(?:/[a-z0-9_.]+)*/(?:[a-z0-9_]+\.py)?)`", page.read_text("utf-8")
        )
    }
    assert len(named) > 50
    for page, word in named:
        if not (PACKAGE / word).exists() and not (ROOT / word).exists():
            missing.add(f"{page.relative_to(ROOT).as_posix()}: {word}")
    hold(missing, house_debts.NAMED_BUT_MISSING)


def test_journeys_go_down_the_layers_only() -> None:
    """A journey in ARCHITECTURE.md is the list of modules that a request passes.

    Each module is in the layer of the previous one, or below.
    """
    draw_layers = tool("draw_layers")
    level = {room: number for number, layer in enumerate(draw_layers.layers()) for room in layer}
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    heading = r"^### ([^\n]*): (\d+) of \d+ modules(?:, \d+ calls|, and \d+ of protocol)?\n(.*?)(?=^##)"
    journeys = re.findall(heading, page, re.MULTILINE | re.DOTALL)
    assert len(journeys) == 8
    for title, count, text in journeys:
        steps = re.findall(r"(?:^|and )\d\. `([a-z0-9_]+)/[a-z0-9_/]+\.py`", text, re.MULTILINE)
        assert len(steps) == int(count), title
        assert [level[room] for room in steps] == sorted(level[room] for room in steps), title


def test_a_request_passes_the_modules_that_its_journey_names() -> None:
    """The test records which modules a request's code calls.

    ARCHITECTURE.md must name only such modules, and give their number.
    """
    walker = tool("walk_journeys")
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    ways = walker.walk(*walker.JOURNEYS)
    for title, passed in ways.items():
        count, total, apart, text = re.findall(
            rf"^### {title}: (\d+) of (\d+) modules(?:, \d+ calls|, and (\d+) of protocol)?\n(.*?)(?=^##)",
            page,
            re.M | re.S,
        )[0]
        steps = re.findall(r"(?:^|and )\d\. `([a-z0-9_/]+\.py)`", text, re.MULTILINE)
        unseen = {step for step in steps if step not in passed and "/kernels/" not in step}
        assert unseen <= NOT_EACH_TIME, title
        assert len(steps) == int(count)
        # What is done once in a while may fall into a walk, or not.
        written = int(total) + int(apart or 0)
        assert abs(len(passed) - written) <= max(3, written // 5), f"{title}: run tools/walk_journeys.py"
        beside = [path for path in passed if not path.startswith("protocol/")]
        assert title not in walker.APART or len(beside) <= CLIENT_MODULES_MAX, f"{title} passes {beside}"
        if title == "A Produce":
            assert len(passed) <= PRODUCE_MODULES_MAX, f"a Produce passes {sorted(passed)}"
            assert passed.total() <= PRODUCE_CALLS_MAX, f"a Produce takes the calls {passed}"


PRODUCE_MODULES_MAX, PRODUCE_CALLS_MAX = 14, 28
"""The most modules and function calls for a Produce request.

A Produce takes 13 modules and 26 calls; one module or two calls more are allowed.
"""


CLIENT_MODULES_MAX = 33
"""The most modules that a client uses for a Fetch to Arrow or a Spark micro-batch, besides `protocol`.

Each uses 30. On a slow machine metadata may expire meanwhile: requesting it again uses three more.
"""


NOT_EACH_TIME = {
    "broker/replication/control/controller.py",  # only when the in-sync replicas change
    "queries/pushdown/arrow_filters.py",  # called by a thread of DuckDB at times, which no profile sees
}
"""Modules that ARCHITECTURE.md names, but that a recorded request does not always use."""


LAZY = [room for room in [PACKAGE, *ROOMS] if "lazy_names(" in (room / "__init__.py").read_text("utf-8")]


@for_each(LAZY)
def test_every_name_of_a_lazy_package_is_found(room: Path) -> None:
    module = importlib.import_module(".".join(room.relative_to(PACKAGE.parent).parts))
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None
