"""What is checked where components are called: they get what they cannot change, and what they
return is looked at once, in every round and for every procedure, before it can reach a record.

Arrays and mappings are handed out read-only. Tensors cannot be: a component that changes one in
place is found by the tensor's version, and ends the run.
"""
