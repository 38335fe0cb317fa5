"""The share coordinator (KIP-932): what share groups have done with records, kept in `__share_group_state`.

`coordinator` decides, `state` is what is kept of a share partition, `records` are its bytes, `topic` its log.
`service` is the node around them. No clock and no I/O in the first three.
"""
