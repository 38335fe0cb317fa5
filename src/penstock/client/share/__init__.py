"""Share groups (KIP-932), the client's half: sessions, acquired records, acknowledgements, and workers."""
