"""Judges of a finished simulation, apart from the code that they judge.

Nothing here imports LakeVilla: a checker sees what clients were told (`history`) and what the store held
at every moment. Each check returns the violations that it found, as sentences.
"""
