"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "194d8d6ce8be2d07"
