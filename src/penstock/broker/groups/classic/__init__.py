"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

`coordinator` handles these requests for groups of both types that members of this protocol join, and has all
classic groups. `states` has the states of a classic group and their transitions as tables, `group` is the
state machine with these states, and `roster` its members. Nothing here does I/O: groups to be stored and
responses are put into a `GroupOutbox`, and deadlines are timers.
"""
