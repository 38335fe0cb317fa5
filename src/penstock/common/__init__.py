"""What several rooms need and none owns: suggestions for misspelt words, Java's hash, advice for errno.

Knows nothing of Kafka's protocol, of records or of sockets. Imports nothing of the package but `errors`
and `model`.
"""
