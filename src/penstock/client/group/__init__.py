"""Consumer groups, the client's half: membership, assignors, committed offsets.

`membership` is the state machine of a member of the classic protocol, `consumer_membership` that of a member
by KIP-848; neither does I/O. `member` sends the requests of both to the coordinator; `session` joins them
with a consumer.
"""
