"""Compare a cluster of three brokers with one broker: start-up time, memory, and acknowledged sends.

The third line of output is for a cluster with a thousand additional empty partitions on each broker.

    python benchmarks/cluster.py

Each line is measured in a process of its own. The targets for the cluster are 300 ms to start and 90 MB of
memory.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from harness import print_table

RUNS = 5

MORE = "and 1,000 more"

CODE = """
import json, resource, sys, time
started, cpu = time.perf_counter(), time.process_time()
if sys.argv[1] == "one broker":
    from penstock.broker.broker import Broker
    served = Broker()
else:
    from penstock.broker.cluster import Cluster
    served = Cluster(3)
import socket
with served:
    for address in served.bootstrap_servers.split(","):
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port))).close()
    start_ms, start_cpu_ms = (time.perf_counter() - started) * 1e3, (time.process_time() - cpu) * 1e3
    with open("/proc/self/status") as status:
        memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
    from penstock import Admin, Producer
    if sys.argv[1] not in ("one broker", "three brokers"):
        with Admin(served.bootstrap_servers) as admin:
            admin.create_topic("others", partitions=1000, replication_factor=3)
        time.sleep(5)  # until followers have seen that there are no records
    latencies = []
    with Producer(served.bootstrap_servers, {"acks": "all", "linger.ms": "0"}) as producer:
        for number in range(500):
            before = time.perf_counter()
            producer.send("t", b"x" * 100).result()
            latencies.append(time.perf_counter() - before)
latencies.sort()
print(json.dumps([start_ms, start_cpu_ms, memory, latencies[250] * 1e3, latencies[494] * 1e3]))
"""

COLUMNS = ("start ms", "start CPU ms", "memory MB", "acked produce p50 ms", "p99 ms")


def measure(which: str) -> list[float]:
    """Return the medians of several runs of one kind of cluster, in the order of `COLUMNS`."""
    runs = []
    for _ in range(RUNS):
        done = subprocess.run([sys.executable, "-c", CODE, which], capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def main() -> None:
    """Print a line of figures for one broker and for each kind of cluster."""
    rows = [
        (which, *(f"{figure:.2f}" for figure in measure(which)))
        for which in ("one broker", "three brokers", MORE)
    ]
    print_table(f"A cluster in one process, medians of {RUNS} processes", ("", *COLUMNS), rows)


if __name__ == "__main__":
    main()
