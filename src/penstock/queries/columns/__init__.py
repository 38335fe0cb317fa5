"""The columns of a data set that are made from keys and values, and their decoding."""
