"""Build the wheel, install it into an empty environment for each Python, and run the README's examples.

Usage: python tools/try_wheel.py [3.11 3.12 3.13 3.14]

Interpreters are searched as ``pythonX.Y`` on PATH and in the versions folder of pyenv. A version that is
given as an argument and not found is an error. Without arguments, all versions from 3.11 to 3.14 on this
machine are used, and the missing ones are listed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "spark"
README_TEST = "tests/test_documents.py::test_blocks_run[README.md]"


def works(python: Path | str) -> bool:
    done = subprocess.run([python, "-c", "import ensurepip"], capture_output=True, check=False)
    return done.returncode == 0


def interpreter(version: str) -> Path | None:
    """Return an interpreter of this version that can make virtual environments; None if there is none."""
    candidates = [Path(found)] if (found := shutil.which(f"python{version}")) else []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += sorted(pyenv.glob(f"{version}.*/bin/python"))
    return next((python for python in candidates if works(python)), None)


def run(*command: str | Path) -> None:
    print("+", *command, flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


def install(python: Path, wheel: Path, place: Path) -> Path:
    run(python, "-m", "venv", place)
    # What is not imported need not be compiled.
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    run(*pip, "--constraint", "constraints.txt", f"{wheel}[{EXTRAS}]", "pytest", "pytest-timeout")
    return place


def try_wheel(place: Path) -> None:
    probe = "import penstock, pathlib; print(pathlib.Path(penstock.__file__).parent)"
    home = subprocess.run(
        [place / "bin" / "python", "-c", probe], cwd=place, capture_output=True, text=True, check=True
    )
    if not Path(home.stdout.strip()).is_relative_to(place):
        raise SystemExit(f"penstock was imported from {home.stdout.strip()}, not from the wheel")
    # What the other tests share needs tools that an installation does not have.
    run(place / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", README_TEST)


def main(wanted: list[str]) -> int:
    found = {version: interpreter(version) for version in wanted or VERSIONS}
    missing = [version for version, python in found.items() if python is None]
    if missing:
        print(f"not on this machine: Python {', '.join(missing)}", file=sys.stderr)
        if wanted:
            return 1
    pythons = [(version, python) for version, python in found.items() if python is not None]
    with (
        tempfile.TemporaryDirectory(prefix="penstock-wheel-") as folder,
        ThreadPoolExecutor(1, "install") as beside,
    ):
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder)
        wheel = next(Path(folder).glob("*.whl"))
        places = [Path(folder) / f"venv-{version}" for version, _ in pythons]
        # While examples run on one Python, the next one is set up.
        installed = [
            beside.submit(install, python, wheel, place)
            for (_, python), place in zip(pythons, places, strict=True)
        ]
        try:
            for each in installed:
                try_wheel(each.result())
                shutil.rmtree(each.result())
        except BaseException:
            beside.shutdown(wait=False, cancel_futures=True)
            raise
    print("the README's examples ran on Python", *(version for version, _ in pythons))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
