"""The APIs of consumer groups. A broker without groups does not pay for them at its start."""

from __future__ import annotations

from penstock.broker.requests.dispatch import handler_in
from penstock.protocol.api import ApiKey

GROUP_APIS = {
    "group_membership": (
        (ApiKey.JOIN_GROUP, 0, 9),
        (ApiKey.SYNC_GROUP, 0, 5),
        (ApiKey.HEARTBEAT, 0, 4),
        (ApiKey.LEAVE_GROUP, 0, 5),
    ),
    "group_offsets": (
        (ApiKey.OFFSET_COMMIT, 0, 10),
        (ApiKey.OFFSET_FETCH, 0, 10),
        (ApiKey.OFFSET_DELETE, 0, 0),
    ),
    "group_admin": (
        (ApiKey.DESCRIBE_GROUPS, 0, 6),
        (ApiKey.LIST_GROUPS, 0, 5),
        (ApiKey.DELETE_GROUPS, 0, 3),
    ),
}
"""Modules of this package, each with the APIs it answers and the versions it speaks."""

for _module, _apis in GROUP_APIS.items():
    for _api in _apis:
        handler_in(f"penstock.broker.handlers.{_module}", *_api)
