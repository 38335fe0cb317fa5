"""A look at the wire: messages as JSON and bytes, line by line, and conversations out of captures.

Uses the protocol and record formats, and neither client nor broker. `lines` serves other programs,
`conversation` and `tree` serve people.
"""
