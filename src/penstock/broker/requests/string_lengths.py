"""Limits on the length of strings that are stored, or returned in every version of a response.

Flexible versions of requests carry strings of any length. In records of `__consumer_offsets`, and in
responses before the flexible versions, a string has a length of two bytes.
"""

STRING_BYTES_MAX = 32_767
