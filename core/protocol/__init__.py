"""How documents and sources change their states, and which chunks are served. `README.md` beside this file explains
the protocol: the states, the guards and the accident that each prevents, the order of writes, and timelines."""
