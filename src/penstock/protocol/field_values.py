"""Named constants for special values of protocol fields that several modules need.

A field that is an enumeration of its own, such as an error code, has its own module. This module imports
nothing, so that it does not slow down the start.
"""

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32
"""The types of resources that have settings, in requests about settings and in ConfigRecord. ACLs number
their resources differently: `penstock.security.acls.ResourceType`."""

ALL_REPLICAS = -1
"""The `acks` of a Produce that is answered once all in-sync replicas have the records."""

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""The isolation levels: the second hides records of open and of aborted transactions."""

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
"""The types of keys in FindCoordinator: a group, a transactional id, a partition of a share group."""

NOT_ASKED = -(2**31)
"""The value of the authorized operations in an answer if the request did not ask for these operations."""
