"""The kinds of claims: about values (`levels`), and about differences (`differences`)."""
