"""Tables of results: what a study can set, and how they become CSV, Markdown and LaTeX."""
