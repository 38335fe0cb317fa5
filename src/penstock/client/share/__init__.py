"""Share groups, the client's half (KIP-932): sessions, acquired records, acknowledgements, and workers."""
