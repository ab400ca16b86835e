"""The public names of this package."""

from src.strings import slugify

__all__ = ["slugify"]
