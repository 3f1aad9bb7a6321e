"""Bundles: one file with all that machines without internet need to become nodes or a coordinator (docs/bundle.md)."""
