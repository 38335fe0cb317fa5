"""The metrics page for Prometheus: requests and bytes by client software, API and version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.common.prometheus import label_value

if TYPE_CHECKING:
    from penstock.gateway.counters import ClientCount

FAMILIES = (
    ("requests", "Requests of clients."),
    ("request_bytes", "Bytes of requests."),
    ("response_bytes", "Bytes of responses."),
)


def page(rows: Iterable[ClientCount], connections: int, held_bytes: int) -> str:
    """Return the text of the metrics page, in which counts are summed over client addresses."""
    sums: dict[str, list[int]] = {}
    for row in rows:
        pairs = (
            ("software", row.software),
            ("software_version", row.software_version),
            ("client_id", row.client_id),
            ("api", row.api),
            ("version", str(row.version)),
            ("translated", "false" if row.is_spoken else "true"),
        )
        labels = ",".join(f'{name}="{label_value(value)}"' for name, value in pairs)
        found = sums.setdefault(labels, [0, 0, 0])
        for at, (name, _) in enumerate(FAMILIES):
            found[at] += getattr(row, name)
    lines: list[str] = []
    for at, (family, text) in enumerate(FAMILIES):
        name = f"penstock_gateway_{family}_total"
        lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
        lines += [f"{name}{{{labels}}} {found[at]}" for labels, found in sums.items()]
    for gauge, text, value in (
        ("connections", "Connections of clients.", connections),
        ("held_bytes", "Bytes that the gateway holds.", held_bytes),
    ):
        name = f"penstock_gateway_{gauge}"
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value}"]
    return "\n".join(lines) + "\n"
