"""The commands of `cohort`: NAME_command(options), and NAME_arguments(parser) for its options."""
