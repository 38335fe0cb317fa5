"""Functions for DataFrames: records from and to CloudEvents, and columns encoded with a registry's schemas."""
