"""A certificate authority of the test's own."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

from dispatcher.channels.provider import tls_context


@dataclass(frozen=True)
class Authority:
    """Issues certificates; `file` is what the configuration names."""

    ca: trustme.CA
    file: str

    @classmethod
    def make(cls, folder: Path) -> "Authority":
        """A new one."""
        ca = trustme.CA()
        path = folder / "ca.pem"
        ca.cert_pem.write_to_path(path)
        return cls(ca, str(path))

    def server(self, *names: str) -> ssl.SSLContext:
        """Of a server with these names or addresses."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.ca.issue_cert(*names).configure_cert(context)
        return context

    def client(self) -> ssl.SSLContext:
        """Of who was given the file, as the process makes it."""
        return tls_context(self.file)
