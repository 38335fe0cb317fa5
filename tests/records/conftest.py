"""The kernels twice: as numba compiles them, and the same source uncompiled."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

import pytest

from penstock.records import decode, encode, growing
from penstock.records.kernels import decode_kernels as kernels
from penstock.records.kernels import encode_kernels, jit


def _load(original: ModuleType, name: str) -> ModuleType:
    assert original.__file__ is not None
    spec = importlib.util.spec_from_file_location(name, original.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_plain() -> tuple[ModuleType, ModuleType]:
    before = os.environ.get("PENSTOCK_NO_JIT")
    os.environ["PENSTOCK_NO_JIT"] = "1"
    try:
        plain_jit = _load(jit, "plain_jit")
        assert not plain_jit.COMPILED
        sys.modules["penstock.records.kernels.jit"] = plain_jit
        return _load(kernels, "plain_kernels"), _load(encode_kernels, "plain_encode_kernels")
    finally:
        sys.modules["penstock.records.kernels.jit"] = jit
        if before is None:
            del os.environ["PENSTOCK_NO_JIT"]
        else:
            os.environ["PENSTOCK_NO_JIT"] = before


PLAIN_KERNELS, PLAIN_ENCODE_KERNELS = _load_plain()


@pytest.fixture(params=["compiled", "plain"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with compiled kernels, and again with plain ones."""
    if request.param == "plain":
        monkeypatch.setattr(decode, "kernels", PLAIN_KERNELS)
        monkeypatch.setattr(growing, "kernels", PLAIN_KERNELS)
        monkeypatch.setattr(encode, "kernels", PLAIN_ENCODE_KERNELS)
    elif not jit.COMPILED:
        pytest.skip("numba is not installed, or switched off")
    return str(request.param)
