"""Consumer groups, the client's half: membership, assignors, committed offsets.

`membership` decides for a member of the classic protocol, `consumer_membership` for one of KIP-848; neither
does I/O. `member` lets either talk to a coordinator; `session` is what a consumer holds of them.
"""
