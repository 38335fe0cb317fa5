"""What both ends of a secured connection share: SCRAM, TLS, key stores, JAAS text, tokens, hidden passwords.

Nothing here opens a socket: bytes go in, bytes come out, and random numbers and time are arguments. Modules
are imported when a setting asks for them; `import penstock` loads none.
"""
