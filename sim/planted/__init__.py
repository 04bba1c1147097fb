"""Known bugs, to be planted one by one: does the simulation find them?"""
