"""The console: Muster over HTTP, for people with a browser and for programs in any language.

It is a client of the coordinator. What it answers it asks with the token of whoever asks. To notify others of events it
has one of its own.
"""
