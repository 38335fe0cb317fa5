"""Limits on the length of strings that are stored, or returned in every version of a response.

Flexible versions of requests carry strings of any length. In records of `__consumer_offsets`, and in
responses before the flexible versions, the length of a string is a 16-bit number.
"""

STRING_BYTES_MAX = 32_767
