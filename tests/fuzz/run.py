"""The fuzzer: `make fuzz` runs each target for a while, guided by code coverage.

    python tests/fuzz/run.py [--seconds 60] [TARGET …]

Each target runs in a process of its own. An input that makes a target fail is added to `tests/fuzz/corpus/`,
which the tests replay, and the exit status is 1. The program needs atheris (the dependency group `fuzz`).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve()
INPUT_BYTES_MAX = 4096


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60, help="time for each target")
    parser.add_argument("--inside", metavar="DIRECTORY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        fuzz_here(options.targets[0], Path(options.inside), options.seconds)
        return 0
    sys.path.insert(0, str(HERE.parents[1]))
    from fuzz.targets import TARGETS

    unknown = set(options.targets) - TARGETS.keys()
    if unknown:
        parser.error(f"there is no target {min(unknown)}; there are {', '.join(TARGETS)}")
    broken = [name for name in options.targets or TARGETS if not run_beside(name, options.seconds)]
    if broken:
        print(f"\nbroken: {', '.join(broken)}; the inputs are in tests/fuzz/corpus/")
    return 1 if broken else 0


def run_beside(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own; return True if no input made the target fail.

    Otherwise the input that failed is added to the corpus.
    """
    from fuzz.targets import keep

    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, str(HERE), "--inside", directory, "--seconds", str(seconds), name]
        # Loops over records as plain Python: the coverage of compiled ones cannot be seen.
        environment = {**os.environ, "PENSTOCK_PURE_PYTHON": "1"}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines = done.stdout.splitlines()
        summary = next((line for line in reversed(lines) if re.match(r"#\d", line)), "")
        print(f"{name:12} {'ok' if done.returncode == 0 else 'BROKEN'}  {summary}")
        if done.returncode == 0:
            return True
        after = [line for before, line in pairwise(lines) if "Uncaught Python exception" in before]
        problem = (after or [line for line in lines if "ERROR" in line] or [""])[0]
        print("\n".join(lines[-30:]))
        for path in sorted(Path(directory).glob("found/*")):
            keep(name, path.read_bytes(), f"{path.name.partition('-')[0]}: {problem.strip()[:80]}")
    return False


def fuzz_here(name: str, directory: Path, seconds: int) -> None:
    """Fuzz one target in this process until the time is over.

    The function does not return, because libFuzzer ends the process.
    """
    import atheris

    with atheris.instrument_imports(include=["penstock"]):
        sys.path.insert(0, str(HERE.parents[1]))
        from fuzz.seeds import seeds
        from fuzz.targets import TARGETS
    instrument_codecs(atheris)
    for part in ("begin", "found"):
        (directory / part).mkdir()
    for number, data in enumerate(seeds(name)):
        (directory / "begin" / str(number)).write_bytes(data)
    arguments = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={directory}/found/",
        f"-max_len={INPUT_BYTES_MAX}",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    ]
    atheris.Setup([str(HERE), *arguments, str(directory / "begin")], TARGETS[name])
    atheris.Fuzz()


def instrument_codecs(atheris: object) -> None:
    """Add the generated code of message codecs to the coverage, which atheris takes from imports only."""
    from types import FunctionType

    from penstock.protocol.compiler import compile as compiling

    build = compiling.build

    def build_instrumented(*arguments: object) -> object:
        function = build(*arguments)  # type: ignore[arg-type]
        for each in list(function.__globals__.values()):
            if isinstance(each, FunctionType) and each.__globals__ is function.__globals__:
                atheris.instrument_func(each)  # type: ignore[attr-defined]
        return function

    compiling.build = build_instrumented


if __name__ == "__main__":
    sys.exit(main())
