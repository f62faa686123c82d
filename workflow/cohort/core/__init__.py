"""Files, errors, HDF5, logs, random draws, components: nothing about federated learning."""
