"""`python -m harmonium`: the command line without its script."""

from harmonium.cli import main

if __name__ == "__main__":
    main()
