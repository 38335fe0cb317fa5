"""Escapes for Prometheus's text format: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations


def label_value(text: str) -> str:
    """Return a text escaped as the value of a label, to be put between quotation marks."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
