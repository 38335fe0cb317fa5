"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "4e10552a200c8183"
