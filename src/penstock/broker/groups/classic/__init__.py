"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Read `states` first: the states of a group and what leads from one to the next, as tables. `group` is the
state machine that runs on them, over the members that `roster` keeps; `coordinator` has all classic groups of
a broker. None of it does I/O: stores and answers are put into an `Outbox`, deadlines are timers.
"""
