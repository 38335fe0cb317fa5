"""Who is at the other end of a connection, and what it may do: authentication, users, tokens, ACLs."""
