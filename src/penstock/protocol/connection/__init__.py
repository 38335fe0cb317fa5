"""The two ends of a Kafka connection without I/O: frames cut, limits kept, answers matched to requests.

The code that drives an end owns the socket. A socket reads straight into the buffer that the end lends; a TLS
layer decrypts into it. `penstock.protocol.connection.client` has the asking end,
`penstock.protocol.connection.server` the answering one, `penstock.protocol.connection.frames` what cuts
frames out of a stream.
"""
