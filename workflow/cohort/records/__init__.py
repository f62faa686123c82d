"""Records, the HDF5 files of finished cells, and the history of a run that they contain."""
