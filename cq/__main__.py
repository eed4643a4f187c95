"""`python -m cq` is the `cq` command."""

from cq.cli import main

if __name__ == "__main__":
    main()
