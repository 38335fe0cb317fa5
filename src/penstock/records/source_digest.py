"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "31c2e8b6e827e9e2"
