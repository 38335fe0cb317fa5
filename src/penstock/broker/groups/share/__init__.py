"""Share groups (KIP-932) at the group coordinator: members, assignor, and initialized share partitions.

`coordinator` finds the group of a request, `group` decides, `state` has the state of a group. A decision is a
list of changes, which are applied only after they are stored as records (`records`). These modules do no I/O,
and have no clock.
"""
