"""Authorization by API: each API has a guard, which is called before the handler.

A guard refuses the parts of a request that the session's principal may not do, or hides them. It calls the
handler for the allowed parts, and adds the refused ones to the response. Handlers do not depend on guards.
`table.GUARDS` lists all guards; most are defined by data, as a `rules.Rule`.
"""
