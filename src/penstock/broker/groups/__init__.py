"""Group coordination: committed offsets, the store of groups, timers, and the group protocols.

`offsets` has the committed offsets, `store` keeps offsets and groups in the topic `__consumer_offsets`
(`topic`, `records`), `timers` has deadlines. These are independent of the group protocols. Each protocol has
a package: `classic`, `consumer` (KIP-848), `share` and `streams`. `service` connects all of them to the
broker.
"""
