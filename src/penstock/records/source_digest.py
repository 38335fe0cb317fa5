"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "879ea72807aed62b"
