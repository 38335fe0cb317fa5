"""Share groups (KIP-932) at partition leaders: records in flight, locks, sessions and stored state."""
