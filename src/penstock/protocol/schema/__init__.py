"""The message definition language: parsing, checks, versions, evolution, and classes made from it."""
