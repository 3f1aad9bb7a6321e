"""Sessions of browsers: a cookie in place of a token that is shown with each request."""
