"""Authorization by API: each API has a guard, which is called before the handler.

A guard hides or refuses what the session may not do, calls the handler for the rest, and completes the
response. Handlers do not depend on guards. `table.GUARDS` lists all guards: most are a `rules.Rule` (data).
"""
