"""Data sets: download, parsing, the HDF5 store, and samples on a device."""
