"""The transaction coordinator: decides about transactional producers without I/O, clocks or threads.

`coordinator` takes requests and the time, and puts into its outbox the records to store in
`__transaction_state`, the markers to write to partitions, and the answers that are ready.
"""
