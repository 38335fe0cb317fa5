"""Functions for DataFrames: records from and to CloudEvents, and columns encoded with registered schemas."""
