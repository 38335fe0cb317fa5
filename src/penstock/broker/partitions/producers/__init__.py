"""The producers of a partition: sequence numbers, epochs, transactions, and their snapshots."""
