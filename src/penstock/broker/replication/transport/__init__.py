"""Messages between the nodes of a cluster and its controller, and what carries them."""
