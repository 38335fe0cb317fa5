"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "f55e8b70623a0258"
