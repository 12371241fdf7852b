"""The command line: one short file for each verb, and `main.py`, which joins them."""
