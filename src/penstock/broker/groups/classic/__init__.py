"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

`coordinator` has all classic groups. It handles these requests for classic groups, and for consumer groups
with members that use this protocol. `states` has the states of a classic group and their transitions as
tables, `group` is the state machine with these states, and `roster` has the members of a group. These modules
do no I/O: groups to be stored and responses are put into a `GroupOutbox`, and deadlines are timers.
"""
