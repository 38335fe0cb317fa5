"""Inspects Kafka's protocol on the wire: messages as JSON and bytes, and conversations from captures.

Uses the protocol and record formats, but neither client nor broker. `lines` serves other programs,
`conversation` and `tree` serve people.
"""
