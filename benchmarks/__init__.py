"""Speed and memory against a plain loop and against peers: `make bench`."""
