"""What clients do to their label counts before they send them."""
