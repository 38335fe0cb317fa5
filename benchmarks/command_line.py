"""Compare `penstock` with kcat: printing a topic with `consume -J`, and copying a topic between brokers.

    python benchmarks/command_line.py [--quick] [--rounds N]

CPU is that of the programs from their start to their end, without the brokers. Both programs print the same
records as JSON to /dev/null. Both copy between Penstock brokers; kcat does so through a pipe, which loses
timestamps and partitions.
"""

from __future__ import annotations

import base64
import itertools
import os
import resource
import shutil
import subprocess
import sys

import pyarrow as pa

from broker_sides import penstock_side
from harness import Contestant, Outcome, arguments, measure, report
from penstock import Admin, write_topic

PENSTOCK = f"{sys.executable} -m penstock"


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: str, count: int) -> Outcome:
    before = children_cpu_s()
    # Without compiled modules on disk, start-up would measure the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    shell = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(shell, capture_output=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr.decode()[-2000:]}")
    return Outcome(count, cpu_seconds=children_cpu_s() - before)


def values(size: int, count: int, is_text: bool) -> pa.Table:
    data = os.urandom(size * 1000)
    data = base64.b64encode(data)[: size * 1000] if is_text else data
    some = [data[start : start + size] for start in range(0, len(data), size)]
    return pa.table({"value": some * (count // 1000)})


def main() -> None:
    options = arguments("the command line beside kcat", rounds=3)
    if shutil.which("kcat") is None:
        raise SystemExit("kcat is missing; on Debian: apt install kcat")
    million = 100_000 if options.quick else 1_000_000
    names = itertools.count()
    with penstock_side() as source, penstock_side() as target:
        a, b = f"127.0.0.1:{source.port}", f"127.0.0.1:{target.port}"
        for size, count, kind in (
            (100, million, "text"),
            (100, million, "bytes"),
            (1000, million // 4, "text"),
        ):
            topic = f"{kind}-{size}"
            with Admin(a) as admin:
                admin.create_topic(topic, partitions=4, config={"retention.ms": "-1"})
            write_topic(values(size, count, kind == "text"), topic, a, progress=False)
            contestants = [
                Contestant(
                    "penstock",
                    lambda t=topic, n=count: run(f"{PENSTOCK} consume -q -b {a} -t {t} -e -J > /dev/null", n),
                    count,
                ),
                Contestant(
                    "kcat",
                    lambda t=topic, n=count: run(f"kcat -q -b {a} -C -t {t} -e -J > /dev/null", n),
                    count,
                ),
            ]
            measure(contestants, options.rounds)
            report(f"consume -J, {count:,} values of {size} B, {kind}", contestants)
            if kind == "bytes":
                continue  # kcat's pipe cuts values at every byte 10

            def mirror(t: str = topic, n: int = count) -> Outcome:
                name = f"copy-{next(names)}"
                words = f"mirror -q --from {a} -t {t} -b {b} --target-topic {name} --name {name}"
                return run(f"{PENSTOCK} {words}", n)

            def pipe(t: str = topic, n: int = count) -> Outcome:
                name = f"copy-{next(names)}"
                return run(f"kcat -q -b {a} -C -t {t} -e -u | kcat -b {b} -P -t {name}", n)

            contestants = [
                Contestant("penstock mirror", mirror, count),
                Contestant("kcat | kcat", pipe, count),
            ]
            measure(contestants, options.rounds)
            report(f"copy, {count:,} values of {size} B", contestants)


if __name__ == "__main__":
    main()
