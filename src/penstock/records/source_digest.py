"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "c7fc0ff155db6f7c"
