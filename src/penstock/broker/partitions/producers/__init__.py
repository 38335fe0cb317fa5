"""Producers of a partition: sequence numbers, epochs, transactions, and what is saved of them."""
