"""The page ``/client-metrics`` of a broker: the newest values of clients as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable

from penstock.broker.client_metrics.newest_values import ClientMetric

BYTES_MAX = 16 << 20
"""The maximum number of characters of the page. If necessary, it leaves out the clients whose last push
is oldest.
"""


def as_json(rows: Iterable[ClientMetric]) -> str:
    """Return values as a JSON array of objects with `ClientMetric`'s fields; null for NaN and infinity."""
    lines = []
    left = BYTES_MAX
    for row in reversed(list(rows)):
        fields = row._asdict()
        if not -float("inf") < row.value < float("inf"):
            fields["value"] = None
        line = json.dumps(fields)
        left -= len(line) + 2
        if left < 0:
            break
        lines.append(line)
    return "[" + ",\n".join(reversed(lines)) + "]\n"
