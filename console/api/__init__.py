"""HTTP: paths, what comes in and goes out, and who may hold how much open."""
