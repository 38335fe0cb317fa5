"""The data directory as a whole: files that identify it, checkpoints, locks, and how files reach the disk."""
