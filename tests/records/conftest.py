"""A fixture that runs tests with the compiled kernels, and with the same source as plain Python."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from penstock.records import decode, encode, growing, native
from penstock.records.kernels import compiled, encode_kernels
from penstock.records.kernels import decode_kernels as kernels


def _load(original: ModuleType, name: str) -> ModuleType:
    assert original.__file__ is not None
    spec = importlib.util.spec_from_file_location(name, original.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_plain() -> tuple[ModuleType, ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "LIBRARY", None)
        plain = _load(compiled, "plain_compiled")
        assert not plain.COMPILED
        patch.setitem(sys.modules, "penstock.records.kernels.compiled", plain)
        return _load(kernels, "plain_kernels"), _load(encode_kernels, "plain_encode_kernels")


PLAIN_KERNELS, PLAIN_ENCODE_KERNELS = _load_plain()


@pytest.fixture(params=["compiled", "plain"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with compiled kernels, and again with plain Python ones."""
    if request.param == "plain":
        monkeypatch.setattr(decode, "kernels", PLAIN_KERNELS)
        monkeypatch.setattr(growing, "kernels", PLAIN_KERNELS)
        monkeypatch.setattr(encode, "kernels", PLAIN_ENCODE_KERNELS)
    elif not compiled.COMPILED:
        pytest.skip("the package was installed without a C compiler, or runs as plain Python")
    return str(request.param)
