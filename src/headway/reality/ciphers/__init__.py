"""Feistel ciphers, each in one file on top of `coupling`: des, tea, simon; `catalogue` names them and reads their published vectors.

For demonstration, not for protecting data: no mode of operation, no padding, no care about what running times give away.
"""
