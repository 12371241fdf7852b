"""Architectures: one readable file each, a whole forward pass in view. `registry.py` finds the one a file
names.
"""
