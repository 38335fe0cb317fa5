"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "596417f096607cb1"
