"""What is compared: each a process that does one round when it is told to."""
