"""The one stored form of the model's values: MessagePack, decoded strictly by type."""

import hashlib

import msgspec

from reminders.model.definition import Definition
from reminders.model.ended import Ended
from reminders.model.endpoint import Endpoint
from reminders.model.entry import BackfillPage, Body, DueEntry
from reminders.model.fanout import PageCount
from reminders.model.ledger import LedgerRow
from reminders.model.recipient import Recipient
from reminders.model.record import Change, Record
from reminders.model.subscriber import Secret, Subscriber

_encoder = msgspec.msgpack.Encoder()

encode = _encoder.encode

decode_entry = msgspec.msgpack.Decoder(DueEntry).decode
decode_body = msgspec.msgpack.Decoder(Body).decode
decode_page = msgspec.msgpack.Decoder(BackfillPage).decode
decode_record = msgspec.msgpack.Decoder(Record).decode
decode_change = msgspec.msgpack.Decoder(Change).decode
decode_ledger_row = msgspec.msgpack.Decoder(LedgerRow).decode
decode_ended = msgspec.msgpack.Decoder(Ended).decode
decode_endpoint = msgspec.msgpack.Decoder(Endpoint).decode
decode_page_count = msgspec.msgpack.Decoder(PageCount).decode
decode_recipient = msgspec.msgpack.Decoder(Recipient).decode
decode_subscriber = msgspec.msgpack.Decoder(Subscriber).decode
decode_secret = msgspec.msgpack.Decoder(Secret).decode


def content_hash(definition: Definition) -> bytes:
    """16 bytes that tell one normalized request from another."""
    return hashlib.sha256(encode(definition)).digest()[:16]
