"""Members of consumer groups by KIP-848, the client's half: a state machine without I/O, and its parts."""
