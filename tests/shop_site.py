"""The fixture shop's starter, which the package carries because the demo needs it too."""

from browsermw.testing.shop_site import FOLDER, Shop

__all__ = ["FOLDER", "Shop"]
