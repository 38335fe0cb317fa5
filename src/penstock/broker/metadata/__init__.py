"""The metadata of a cluster: the state, the changes to it, and the log that stores them."""
