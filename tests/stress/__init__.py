"""The long forms of what `make test-all` tries in short: `make stress` runs them and prints one table."""
