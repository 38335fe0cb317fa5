"""Hooks: functions of an application that see, and may change, requests, responses and records.

Each hook applies to certain APIs. Requests of all other APIs are forwarded as bytes, without decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.gateway.hooks.hook import Batch as Batch
    from penstock.gateway.hooks.hook import Client as Client
    from penstock.gateway.hooks.hook import ClientRequest as ClientRequest
    from penstock.gateway.hooks.hook import Hook as Hook
    from penstock.gateway.hooks.hook import Refused as Refused
    from penstock.gateway.hooks.names import renamed_topics as renamed_topics
    from penstock.gateway.hooks.names import tenant as tenant
    from penstock.gateway.hooks.ready_made import address_header as address_header
    from penstock.gateway.hooks.ready_made import checked_events as checked_events
    from penstock.gateway.hooks.ready_made import masked as masked

_HOMES = {
    "Batch": "hook",
    "Client": "hook",
    "ClientRequest": "hook",
    "Hook": "hook",
    "Refused": "hook",
    "address_header": "ready_made",
    "checked_events": "ready_made",
    "masked": "ready_made",
    "renamed_topics": "names",
    "tenant": "names",
}

__all__ = [
    "Batch",
    "Client",
    "ClientRequest",
    "Hook",
    "Refused",
    "address_header",
    "checked_events",
    "masked",
    "renamed_topics",
    "tenant",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
