"""What a finished cell leaves: one HDF5 file; and many of them collected into one tidy table."""
