"""The image of the cluster, what changes it, and the log that keeps it."""
