"""Names and arguments of other clients, and what to type here: read only after a mistake was made."""
