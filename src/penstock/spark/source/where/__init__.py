"""The option `where`: a condition in SQL that narrows the ranges of a batch query and filters its rows."""
