"""Consumer groups: who is in one, who owns what, what has been read.

Read `states` first: the five states of a group and what leads from one to the next, as a table. `group`
is the machine that runs on it, `coordinator` all the groups of a broker; neither does I/O. `offsets` and
`records` are what has been committed and how it is written; `topic` is where; `service` joins them to
the broker, and the modules named after requests translate.
"""
