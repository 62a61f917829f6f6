"""Pure decisions: phases, recovery, admission, effect rules, outcomes, fingerprints, digests.

Nothing here has a clock, a database, a browser or a network; everything here can be tested by calling it.
"""
