"""Authentication and authorization at the broker: SASL, TLS, users, delegation tokens, ACLs."""
