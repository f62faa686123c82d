"""The data sets: download, parsing, the HDF5 store, samples on a device."""
