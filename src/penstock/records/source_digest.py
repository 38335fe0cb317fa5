"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "b19aafc4cc3ab22b"
