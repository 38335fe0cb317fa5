"""Groups of consumers: committed offsets, the store of groups, timers, and the group protocols.

`offsets` holds what has been committed, `store` keeps offsets and groups in the topic `__consumer_offsets`
(`topic`, `records`), `timers` are deadlines. These are independent of the group protocol. `classic` is one
protocol, a client of both; others (KIP-848, share groups) would stand beside it. `service` joins everything
to the broker.
"""
