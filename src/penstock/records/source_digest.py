"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "91b2f7a0a1dc2175"
