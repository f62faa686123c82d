"""The long forms of what `make test-all` tries in short: `make stress` prints a table of them."""
