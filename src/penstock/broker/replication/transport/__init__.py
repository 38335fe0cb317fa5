"""Messages between the nodes of a cluster and its controller, and the transport that carries them."""
