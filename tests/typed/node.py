"""A type check that the broker's node has all attributes that request handlers use. Checked, never run."""

from __future__ import annotations

from penstock.broker.handlers.serving_node import ServingNode
from penstock.broker.node import Node


def serves(node: Node) -> ServingNode:
    return node
