"""The controller of a cluster: elections, placement, reassignments, and the authority that writes them."""
