"""The transaction coordinator: decides about transactional producers without I/O, clocks or threads.

`coordinator` takes requests and the time, and puts into its outbox what has to be stored in
`__transaction_state`, which markers partitions have to get, and which answers are ready.
"""
