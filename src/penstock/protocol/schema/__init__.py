"""The message definition language: parser, rules, versions, and classes made from definitions."""
