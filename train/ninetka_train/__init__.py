"""How agents learn games, and how they are judged."""


def package_version() -> str:
    """Return the version of the installed package."""
    from importlib import metadata  # what this loads would keep the command's start waiting

    try:
        return metadata.version("ninetka-env")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"
