"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "f8c01519b975430b"
