"""One segment of a log: its file, its two indexes, its cuts."""
