"""Checks at the door between rounds and components: a component gets what it cannot change, and
what it returns is checked once, in every round and for every procedure, before it can reach a
record.

Arrays and mappings are handed out read-only. Tensors cannot be: a component that changes one in
place is found by the tensor's version, and ends the run.
"""
