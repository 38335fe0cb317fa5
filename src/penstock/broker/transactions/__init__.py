"""The transaction coordinator. Apart from `service`, it does no I/O and uses no clock.

`coordinator` takes requests and the time, and puts into its outbox the records to store in
`__transaction_state`, the markers to write to partitions, and the responses that are ready. `service`
connects these to the broker.
"""
