"""``python -m browsermw`` is the command ``browsermw``."""

from browsermw.cli import main

if __name__ == "__main__":
    main()
