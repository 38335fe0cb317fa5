"""The share coordinator (KIP-932): the delivery states of share groups' records, in `__share_group_state`.

`coordinator` computes the changes that a request causes, `state` has the state of a share partition,
`records` converts changes to bytes, and `topic` stores them. `service` connects these modules to the broker.
The modules `coordinator`, `state` and `records` do no I/O, and have no clock.
"""
