"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "723d36225bd49aac"
