"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "f4e68c7e4db71e91"
