"""The HTML report: a page per study, and an index with a card for each."""
