"""Authorization by API: one guard for each, called before the handler.

A guard hides or refuses what the session may not do, has the handler do the rest, and completes the response.
Handlers do not depend on it. `table.GUARDS` has them all: most are a `rules.Rule`, which is data.
"""
