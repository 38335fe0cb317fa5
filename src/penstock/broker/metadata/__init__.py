"""The metadata of a cluster: their state, the changes to that state, and the log that stores the changes."""
