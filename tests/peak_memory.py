"""The source of a function that returns a process's peak memory, for programs that tests run."""

PEAK_MB = """
from pathlib import Path

def peak_mb():  # of this process: getrusage counts from what its parent had
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
"""
