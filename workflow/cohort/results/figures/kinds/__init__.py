"""The kinds of figures: values by round, by run, by client, and across settings."""
