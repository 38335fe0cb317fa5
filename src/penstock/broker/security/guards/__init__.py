"""Authorization by API: each API has a guard, which is called before the handler.

A guard refuses the parts of a request that the session's principal may not do, or hides them. The guard calls
the handler for the allowed parts, and adds errors for the refused parts to the response. Handlers do not
depend on guards. `table.GUARDS` lists all guards; most of them are instances of `rules.Rule`, which list the
required rights.
"""
