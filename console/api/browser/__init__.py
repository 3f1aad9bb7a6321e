"""The pages, as browsers get them: the same for everybody, whoever is signed in."""
