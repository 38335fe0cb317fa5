"""The controller of a cluster: elections, placement, reassignments, and the metadata log."""
