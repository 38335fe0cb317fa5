"""The node has all that handlers use of it, by the same types. Checked, never run."""

from __future__ import annotations

from penstock.broker.handlers.serving_node import ServingNode
from penstock.broker.node import Node


def serves(node: Node) -> ServingNode:
    return node
