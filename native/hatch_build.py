"""Compile the kernels while the package is built; without a C compiler the package is plain Python.

The build of a wheel and an editable installation call this. ``PENSTOCK_KERNELS=require`` makes a failure an
error, ``PENSTOCK_KERNELS=no`` builds without them. As a program it compiles into the checkout:

    python native/hatch_build.py [--check-bounds]
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program
    BuildHookInterface = object  # type: ignore[assignment, misc]

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "native" / "kernels.c"
FLAGS = ("-O3", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-fvisibility=hidden")
IS_LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether one library serves all later versions of Python; the free-threaded build has no such interface."""
NAME = "_kernels.abi3.so" if IS_LIMITED else f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}"


class CannotCompile(Exception):
    """There is no compiler, or it failed."""


def compile_kernels(target: Path, *more: str) -> None:
    """Compile `native/kernels.c` to the module `target`, which is replaced only when it is whole.

    Raises:
        CannotCompile: with what the compiler said.
    """
    configured = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    found = [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]
    compiler = configured if shutil.which(configured[0]) else next(iter(found), None)
    if compiler is None or os.name == "nt":
        raise CannotCompile("there is no C compiler (on Debian: apt install gcc)")
    fresh = target.with_suffix(f".{os.getpid()}.tmp")
    command = [*compiler, *FLAGS, *more, "-shared", f"-I{sysconfig.get_path('include')}"]
    if IS_LIMITED:
        command.append("-DPy_LIMITED_API=0x030b0000")
    if sys.platform == "darwin":
        command += ["-undefined", "dynamic_lookup"]
    done = subprocess.run(
        [*command, str(SOURCE), "-o", str(fresh)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        fresh.unlink(missing_ok=True)
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise CannotCompile(f"{compiler[0]} failed: {first}")
    fresh.replace(target)


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """The hook of the build backend."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the platform in the wheel; warn where that cannot be."""
        wanted = os.environ.get("PENSTOCK_KERNELS", "")
        target = ROOT / "src" / "penstock" / NAME
        if self.target_name != "wheel" or wanted == "no":
            target.unlink(missing_ok=True)
            return
        try:
            compile_kernels(target)
        except (CannotCompile, OSError) as error:
            if wanted == "require":
                raise
            target.unlink(missing_ok=True)
            self.app.display_warning(f"Penstock's kernels run as plain Python, more slowly: {error}")
            return
        build_data["pure_python"] = False
        if IS_LIMITED:
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"
        else:
            build_data["infer_tag"] = True
        if version != "editable":
            build_data["force_include"][str(target)] = f"penstock/{NAME}"


if __name__ == "__main__":
    more = ["-DCHECK_BOUNDS"] if "--check-bounds" in sys.argv[1:] else []
    try:
        compile_kernels(ROOT / "src" / "penstock" / NAME, *more)
    except CannotCompile as problem:
        sys.exit(f"kernels: {problem}")
