"""What proves that browsermw keeps its word: the fixture shop's starter, and the demo."""
