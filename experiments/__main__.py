"""``python -m experiments`` is the command ``stagecraft``."""

from experiments.cli import main

if __name__ == "__main__":
    main()
