"""Generated from protos/tocsin/v1 by `make generate`: change the protos, not these files."""
