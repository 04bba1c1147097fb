"""The suite `world`: what lies outside of one lake, one hour and one well-behaved set of clients.

Clients sleep for days at any request while others commit, vacuum, tag and clean logs; tables are deleted and
made again where they were; two lakes share a table; several threads share a transaction; answers of decisive
writes are lost until the client gives up. `play` plays a seed, `judge` and
`sim.checkers.lives.lives` judge it.
"""
