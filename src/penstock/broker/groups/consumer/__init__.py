"""Consumer groups by KIP-848: members, assignors at the broker, reconciliation, and the records they store.

`coordinator` finds the group of a request, `group` decides, `state` is what a group consists of. A decision
is a list of changes; they are stored as records (`records`), and only then made. No I/O and no clock.
"""
