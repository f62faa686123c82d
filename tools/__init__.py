"""What makes documents from committed results."""
