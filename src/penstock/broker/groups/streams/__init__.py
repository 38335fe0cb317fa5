"""Streams groups (KIP-1071) at the group coordinator: topology, internal topics, tasks, and who gets them.

`coordinator` finds the group of a request, `group` decides, `state` is what a group consists of. A decision
is a list of changes; they are stored as records (`records`), and only then made. No I/O and no clock.
"""
