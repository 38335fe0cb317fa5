"""Share groups (KIP-932) at the leaders of partitions: records in flight, locks, sessions, their state."""
