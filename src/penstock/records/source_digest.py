"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "db2df36cc703f935"
