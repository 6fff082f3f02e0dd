"""How agents learn games, and how they are judged."""

from importlib import metadata


def package_version() -> str:
    """Return the version of the installed package."""
    try:
        return metadata.version("ninetka-env")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"
