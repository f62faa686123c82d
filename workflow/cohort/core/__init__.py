"""What every other part builds on: files, errors, HDF5, logs, random draws, components. It knows nothing of federated learning."""
