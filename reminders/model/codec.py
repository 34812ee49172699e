"""The one stored form of the model's values: MessagePack, decoded strictly by type."""

import hashlib

import msgspec

from reminders.model.definition import Definition
from reminders.model.entry import BackfillPage, Body, DueEntry, DueKey
from reminders.model.ledger import LedgerRow
from reminders.model.record import Change, Record

_encoder = msgspec.msgpack.Encoder()

encode = _encoder.encode

decode_entry = msgspec.msgpack.Decoder(DueEntry).decode
decode_body = msgspec.msgpack.Decoder(Body).decode
decode_page = msgspec.msgpack.Decoder(BackfillPage).decode
decode_key = msgspec.msgpack.Decoder(DueKey).decode
decode_record = msgspec.msgpack.Decoder(Record).decode
decode_change = msgspec.msgpack.Decoder(Change).decode
decode_ledger_row = msgspec.msgpack.Decoder(LedgerRow).decode


def content_hash(definition: Definition) -> bytes:
    """16 bytes that tell one normalized request from another."""
    return hashlib.sha256(encode(definition)).digest()[:16]
