"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "95b07bac4fbaff11"
