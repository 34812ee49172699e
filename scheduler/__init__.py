"""The gRPC service: what callers send becomes use cases of `reminders.lifecycle`, and back.

`validation/`  request → domain values, with every violation; equal requests become equal values.
`mapping/`     domain values → messages.
`tokens`       etags and page tokens: opaque outside, checked when they come back.
`errors`       one table: domain error → gRPC code, HTTP status, google.rpc details.
`admission`    how many creates may be under way at once, in number and bytes.
`gathering`    calls that come together are worked on together.
`stream`       one stream of batches: bounded, in order, reads no faster than the store takes.
`calls`        around every call: errors, `deadlines`, metrics.
`service`      the RPCs. Start reading here. `topics`: those about subscribers,
               `recipients`: those about users' records, which `lookups` reads for others,
               `deliveries`: those about what was not delivered, and endpoints.
`health`       grpc.health.v1.
`server`       all of it on a port; drain.

Imports of Tocsin: `reminders`, and the stubs `tocsin.v1`, which appear nowhere else on the server's
side but here and in the command line's client. Nobody imports this package but its wiring.
"""
