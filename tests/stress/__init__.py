"""The long forms of what `make test` tries in short: `make stress` runs them and prints one table."""
