"""Servers that speak what providers document, for tests: TLS, DNS, SMTP, Twilio, FCM, APNs.

Each keeps what it was sent, checks credentials as the provider does, and answers errors in the
provider's own form. Where the vendor's client library is at hand, a test drives the stand-in with
it, too.
"""
