"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Read `states` first, which has the states of a group and their transitions as tables. `group` is the state
machine with these states, and `roster` its members; `coordinator` has all classic groups of a broker. Nothing
here does I/O: groups to be stored and responses are put into a `GroupOutbox`, and deadlines are timers.
"""
