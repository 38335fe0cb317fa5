"""Consumer groups, the client's half: membership, assignors, committed offsets.

`membership` decides for a member of the classic protocol, `consumer_membership` for a member by KIP-848;
neither does I/O. `member` sends the requests of both to the coordinator; `session` joins them with a
consumer.
"""
