"""Who is who: certificates, the secrets in tokens, and the files in which both are kept."""
