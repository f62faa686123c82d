"""Speed and memory against a plain PyTorch loop and other frameworks: `make bench`."""
