"""From the flags that say where to, to channels: of a reminder, or of a subscriber."""

import typer
from tocsin.v1 import reminder_pb2 as pb

from reminders.cli.options import Content
from reminders.cli.values import pairs

FLAGS = (
    *("webhook", "header", "secret", "email", "subject", "sms", "push", "provider", "by", "log"),
)
"""Their names in `Content`."""


def channels(what: Content) -> list[pb.Channel]:
    """Webhooks, e-mails, SMS, push, then the log; a kind's further ones get an id of their own."""
    _refuse_lonely(what)
    headers = pairs("--header", what.header)
    secret_id = what.secret or ""
    hooks = [
        pb.WebhookChannel(url=url, headers=headers, secret_id=secret_id) for url in what.webhook
    ]
    emails = [pb.EmailChannel(to=to, subject=what.subject or "") for to in what.email]
    found = [
        *(pb.Channel(channel_id=_nth("webhook", n), webhook=each) for n, each in enumerate(hooks)),
        *(pb.Channel(channel_id=_nth("email", n), email=each) for n, each in enumerate(emails)),
        *(
            pb.Channel(channel_id=_nth("sms", n), sms=pb.SmsChannel(to=to))
            for n, to in enumerate(what.sms)
        ),
        *(
            pb.Channel(
                channel_id=_nth("push", n),
                push=pb.PushChannel(to=to, provider=_provider(what.provider)),
            )
            for n, to in enumerate(what.push)
        ),
    ]
    found += [_by_record(kind, what) for kind in dict.fromkeys(what.by)]
    if what.log:
        found.append(pb.Channel(log=pb.LogChannel()))
    if not found:
        ways = "--webhook URL, --email ADDRESS, --sms NUMBER, --push TOKEN, --by KIND or --log"
        raise typer.BadParameter(f"say where to: {ways}")
    return found


def _by_record(kind: str, what: Content) -> pb.Channel:
    """Without an address: the user's recipient record has it."""
    channel = pb.Channel(channel_id=f"{kind}-by-record" if getattr(what, kind, ()) else "")
    if kind == "email":
        channel.email.CopyFrom(pb.EmailChannel(subject=what.subject or ""))
    elif kind == "sms":
        channel.sms.SetInParent()
    elif kind == "push":
        provider = _provider(what.provider) if what.provider else pb.PUSH_PROVIDER_UNSPECIFIED
        channel.push.CopyFrom(pb.PushChannel(provider=provider))
    else:
        raise typer.BadParameter(f"--by {kind}: choose one of email, sms, push")
    return channel


def _refuse_lonely(what: Content) -> None:
    """A flag that qualifies nothing is a mistake."""
    qualifiers = (
        ("--header", what.header, "--webhook", what.webhook),
        ("--secret", what.secret, "--webhook", what.webhook),
        ("--subject", what.subject, "--email", what.email or "email" in what.by),
        ("--provider", what.provider, "--push", what.push or "push" in what.by),
    )
    for flag, given, needed, there in qualifiers:
        if given and not there:
            raise typer.BadParameter(f"{flag} goes with {needed}")


def _nth(kind: str, index: int) -> str:
    return "" if index == 0 else f"{kind}-{index + 1}"


def _provider(name: str | None) -> pb.PushProvider.ValueType:
    known = {"fcm": pb.PUSH_PROVIDER_FCM, "apns": pb.PUSH_PROVIDER_APNS}
    if name not in known:
        raise typer.BadParameter("--push needs --provider fcm or --provider apns")
    return known[name]
