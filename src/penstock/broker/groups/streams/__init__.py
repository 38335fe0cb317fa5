"""Streams groups (KIP-1071) at the group coordinator: topology, internal topics, tasks and their assignment.

`coordinator` finds the group of a request. `group` computes the changes to the group, whose state is in
`state`. Changes are applied only after they are stored as records (`records`). These modules do no I/O, and
have no clock.
"""
