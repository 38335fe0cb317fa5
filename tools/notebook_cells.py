"""Run cells in one notebook kernel; the program runs in an environment that has ipykernel.

Each line of stdin is a cell, ``{"code": ..., "timeout_s": ...}``. The program answers each with a line of
JSON: ``{"error": null or traceback, "outputs": [[kind, text], ...]}``. It imports only the standard library
and jupyter_client, and no module of this repository, so that cells use the installed wheel.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from jupyter_client.manager import start_new_kernel

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60)
    try:
        for line in sys.stdin:
            cell = json.loads(line)
            print(json.dumps(run(client, cell["code"], cell["timeout_s"])), flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return 0


def run(client: Any, code: str, timeout_s: float) -> dict[str, Any]:
    """Run a cell; return its outputs as [kind, text] pairs, and its traceback or None."""
    outputs: list[list[str]] = []

    def take(message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            outputs.append([content["name"], content["text"]])
        elif kind in ("display_data", "execute_result", "update_display_data"):
            outputs.append([kind, content["data"].get("text/plain", "")])

    try:
        answer = client.execute_interactive(code, output_hook=take, allow_stdin=False, timeout=timeout_s)
    except TimeoutError:
        return {"error": f"no end within {timeout_s} s", "outputs": outputs}
    content = answer["content"]
    if content["status"] == "ok":
        return {"error": None, "outputs": outputs}
    return {"error": COLOURS.sub("", "\n".join(content.get("traceback", []))), "outputs": outputs}


if __name__ == "__main__":
    raise SystemExit(main())
