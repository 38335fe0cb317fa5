"""Both ends of a Kafka connection without I/O: split frames, apply limits, match answers to requests.

The code that drives an end owns the socket. A socket reads straight into the buffer that the end lends; a TLS
layer decrypts into it. `penstock.protocol.connection.client` has the client's end,
`penstock.protocol.connection.server` the broker's end, `penstock.protocol.framing` splits a stream
into frames.
"""
