"""Authentication and authorization: SASL, users, delegation tokens, ACLs."""
