"""The share coordinator (KIP-932): the delivery states of share groups' records, in `__share_group_state`.

`coordinator` decides, `state` is the state of a share partition, `records` converts it to bytes, `topic` is
its log. `service` connects them to the node. The modules `coordinator`, `state` and `records` do no I/O, and
have no clock.
"""
