"""browsermw makes browser agents safe to interrupt."""
