"""Functions for DataFrames: records from and to CloudEvents, and columns with a schema."""
