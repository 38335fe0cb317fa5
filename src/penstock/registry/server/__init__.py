"""A schema registry server: its state, the topic that stores its records, and its HTTP interface."""
