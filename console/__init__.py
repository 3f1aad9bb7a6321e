"""The console: Muster over HTTP, for people with a browser and for programs in any language.

It is a client of the coordinator. All that it does it does with the token of whoever asks; by itself it may nothing.
"""
