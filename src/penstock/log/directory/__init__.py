"""Files of a whole data directory: identity files, checkpoints, locks, and atomic file writes."""
