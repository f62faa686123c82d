"""Files, errors, HDF5, logs, random generators, components: nothing here knows about federated
learning."""
