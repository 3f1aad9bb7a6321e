"""One file a version, named after it; never edited once released."""
