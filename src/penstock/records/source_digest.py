"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "d9868e1ae760e201"
