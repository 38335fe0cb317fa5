"""Share groups (KIP-932) at the group coordinator: members, their assignor, and what is initialized.

`coordinator` finds the group of a request, `group` decides, `state` is what a group consists of. A decision
is a list of changes; they are stored as records (`records`), and only then made. No I/O and no clock.
"""
