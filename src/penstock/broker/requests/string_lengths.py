"""How long a string may be that is stored, or answered in every version.

Flexible versions of requests carry strings of any length. Records of `__consumer_offsets`, and answers before
those versions, have a length of two bytes in front of a string.
"""

STRING_BYTES_MAX = 32_767
