"""How results are tabulated: what a study may say of a table, and its CSV, Markdown and LaTeX."""
