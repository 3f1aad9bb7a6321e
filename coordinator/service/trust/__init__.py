"""Operations on who is known: accounts, tokens, logins, nodes that join, and the authority that vouches for them."""
