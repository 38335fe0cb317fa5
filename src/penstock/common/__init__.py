"""What several rooms need and none owns: optional libraries, suggestions for misspelt words, Java's hash,
advice for errno, and what barriers report exceptions to.

Knows nothing of Kafka's protocol, of records or of sockets. Imports nothing of the package but `errors`
and `model`.
"""
