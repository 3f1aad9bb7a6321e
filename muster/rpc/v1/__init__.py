"""Generated from protos/muster/rpc/v1 by `make protos`; never edited."""
