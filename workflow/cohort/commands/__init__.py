"""The commands of `cohort`: one module each, with `add_arguments(parser)` and `run(options)`."""
