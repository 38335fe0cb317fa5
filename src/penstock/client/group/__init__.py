"""Consumer groups, the client's half: membership, assignors, committed offsets.

`membership` decides and does no I/O; `member` lets it talk to a coordinator; `group` is what a consumer
holds of both.
"""
