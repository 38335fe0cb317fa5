"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "0ec4f1f5c39f53db"
