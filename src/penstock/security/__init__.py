"""Security code for both ends of a connection: SCRAM, TLS, key stores, JAAS text, tokens, hidden passwords.

No module opens a socket: bytes go in and out, and random numbers and times are arguments. Each module is
imported when a setting requires it; `import penstock` loads none.
"""
