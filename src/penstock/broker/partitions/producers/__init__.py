"""The producers that have written to a partition: sequence numbers, epochs, transactions, snapshots."""
