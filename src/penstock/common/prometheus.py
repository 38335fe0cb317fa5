"""The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations


def label_value(text: str) -> str:
    """Return a text escaped as the value of a label, which stands between quotation marks."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
