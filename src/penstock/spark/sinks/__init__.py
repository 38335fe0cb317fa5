"""A sink that writes tables of files exactly once, and where a query stands."""
