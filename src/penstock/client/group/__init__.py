"""Consumer groups, the client's half: membership, assignors, committed offsets.

`membership` is the state machine of a member of the classic protocol, `consumer_membership` that of a KIP-848
member; neither does I/O. `member` sends the requests of both to the coordinator; `session` connects a
consumer with its membership.
"""
