"""Tests that compiled kernels give the results of the Python source they are made from.

They do not read or write outside of their arrays.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock.records.kernels import compiled
from penstock.records.kernels import decode_kernels as kernels

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(penstock.__file__).parent
DECODE = """
from penstock.records.batch import encode_batch
from penstock.records.decode import decode_columns
print(decode_columns([encode_batch([(b"k", b"v", (), 1)] * 3)], columns=["value"]).value.to_list())
from penstock.records.kernels.compiled import COMPILED
print(COMPILED)
"""
ANSWER = "[b'v', b'v', b'v']\n"
LOUD = "import logging; logging.basicConfig(level=logging.INFO)\n"

needs_compiled = pytest.mark.skipif(
    not compiled.COMPILED, reason="the package was installed without a C compiler"
)
needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="there is no C compiler, or no headers of Python",
)


def run(code: str = DECODE, **environment: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@needs_compiler
def test_an_installation_from_these_sources_is_compiled() -> None:
    assert compiled.COMPILED, "install the package again: make setup"
    assert run() == (ANSWER + "True\n", "")


def test_the_c_sources_are_those_of_the_kernels() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_kernels.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_functions_run_as_plain_python() -> None:
    assert run(PENSTOCK_PURE_PYTHON="1") == (ANSWER + "False\n", "")


def test_without_the_library_the_same_functions_run_and_the_log_says_so() -> None:
    out, err = run(LOUD + "import sys; sys.modules['penstock._kernels'] = None\n" + DECODE)
    assert out == ANSWER + "False\n"
    assert err.count("kernels run as plain Python") == 1


def test_a_library_of_other_sources_is_not_used() -> None:
    other = (
        "import sys, types; sys.modules['penstock._kernels'] = types.SimpleNamespace(DIGEST='of another')\n"
    )
    out, err = run(LOUD + other + DECODE)
    assert out == ANSWER + "False\n"
    assert "install the package again" in err


def test_without_pyarrow_columns_are_plain_numpy() -> None:
    out, _ = run("import sys; sys.modules['pyarrow'] = None\n" + DECODE)
    assert out.startswith(ANSWER)


@needs_compiled
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((), TypeError, "read_unsigned takes 3 arguments, not 0"),
        ((np.zeros(8, np.int32), 0, 8), TypeError, "an array of 1 bytes an element is needed"),
        ((np.zeros((2, 2, 2, 2), np.uint8), 0, 8), TypeError, "at most 3 dimensions"),
        ((np.zeros(8, np.uint8)[::2], 0, 4), ValueError, "not C-contiguous"),
        ((np.zeros(8, np.uint8), 0.5, 4), TypeError, "float"),
        ((np.zeros(8, np.uint8), 1 << 63, 4), OverflowError, "too big"),
        ((b"text", None, 4), TypeError, "NoneType"),
    ],
)
def test_a_wrong_argument_is_an_error_of_python(arguments: tuple, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        kernels.read_unsigned(*arguments)


@needs_compiled
def test_an_array_that_a_kernel_writes_to_has_to_be_writable() -> None:
    state = np.zeros(kernels.WALK_SIZE, np.int64)
    table = np.zeros((1, kernels.TABLE_COLUMNS), np.int64)
    state.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernels.walk_batches(np.zeros(9, np.uint8), 0, 9, 0, 9, table, state)


@needs_compiled
def test_numbers_wrap_and_divide_as_those_of_the_plain_kernels() -> None:
    """Negative numbers divide and shift as in Python: division rounds down, shifts keep the sign.

    Dates before 1970 need both.
    """
    from penstock.cloudevents.columnar.kernels.header_write_kernels import civil
    from penstock.cloudevents.columnar.kernels.timestamp_kernels import days_since_1970

    plain = {each.__name__: each for each in compiled.KERNELS}
    for days in (-719_162, -1, 0, 59, 11_016, 2_932_896):
        assert civil(days) == plain["civil"](days)
        assert days_since_1970(*civil(days)) == days


def module_at(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiler
def test_a_compiler_that_fails_leaves_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = module_at(ROOT / "native" / "hatch_build.py")
    target = tmp_path / "_kernels.abi3.so"
    target.write_bytes(b"of before")
    monkeypatch.setenv("CC", "false")
    with pytest.raises(build.CannotCompile, match="false failed"):
        build.compile_kernels(target)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"of before"]


CHECKED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("penstock._kernels", sys.argv[1])
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


@needs_compiler
@pytest.mark.slow
def test_no_kernel_reaches_beyond_its_arrays(tmp_path: Path) -> None:
    """The tests of records and events run again with kernels that check every array index."""
    build = module_at(ROOT / "native" / "hatch_build.py")
    library = tmp_path / build.NAME
    build.compile_kernels(library, "-DCHECK_BOUNDS")
    tests = [ROOT / "tests" / room for room in ("records", "cloudevents", "registry", "v07/test_columns.py")]
    own = Path(__file__).relative_to(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", CHECKED, library, *tests, f"--ignore={own}", "-m", "not slow and not soak"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_kernels_keep_their_documentation() -> None:
    documented = [each for each in compiled.KERNELS if each.__module__.startswith("penstock.")]
    assert documented
    assert all(each.__doc__ for each in documented if not each.__name__.startswith("_"))
