"""What makes documents and pictures of this repository, run as `python -m tools.NAME`."""
