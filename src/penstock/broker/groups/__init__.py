"""Group coordination: committed offsets, the store of groups, timers, and the group protocols.

`offsets` keeps the committed offsets in memory. `store` writes offsets and groups to the topic
`__consumer_offsets`, and reads them after a restart (`topic`, `records`). These modules are independent of
the group protocols. Each protocol has a package: `classic`, `consumer` (KIP-848), `share` (KIP-932) and
`streams` (KIP-1071). `share_state` is the share coordinator. `service` connects all of them to the broker.
"""
