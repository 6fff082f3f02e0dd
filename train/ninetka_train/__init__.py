"""How agents learn 9tka, and how they are judged."""

from importlib import metadata

ENVIRONMENT = "ninetka_v0"
"""The version of the environment that everything here plays on."""


def package_version() -> str:
    """Return the version of the installed package."""
    try:
        return metadata.version("ninetka-env")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"
