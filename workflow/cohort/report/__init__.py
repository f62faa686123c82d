"""The HTML report: every figure, table and claim of the listed studies on one page."""
