"""Protection of the label counts that clients send."""
