"""The version: of the package, the image and what ``--version`` says."""

VERSION = "0.1.0"
