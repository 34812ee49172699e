"""The Python client of Tocsin: `tocsin.v1` holds the messages and stubs generated from protos/."""
