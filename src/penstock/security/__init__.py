"""Security code for both ends of a connection: SCRAM, TLS, key stores, JAAS text, tokens, hidden passwords.

No module opens a socket: bytes go in and out, and random numbers and times are arguments. Modules are
imported when a setting asks for them; `import penstock` loads none.
"""
