"""Both ends of a Kafka connection without I/O: split frames, apply limits, match answers to requests.

The caller owns the socket, and reads from it into a buffer that the connection object lends; a TLS layer
decrypts into this buffer. `penstock.protocol.connection.client` has the client's end,
`penstock.protocol.connection.server` the broker's end, `penstock.protocol.framing` splits a stream into
frames.
"""
