"""Values as columns: what a data set has besides the columns of records, and how bytes become it."""
