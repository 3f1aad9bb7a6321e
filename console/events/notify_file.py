"""The file of subscriptions: which events go where, and what is allowed; TOML, read once."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from console.events.addresses import AllowedPlaces
from console.events.mail import MailSecurity, MailServer
from console.events.mqtt.broker import BrokerPlace
from console.events.subscription import EventSubscription, MailTarget, MqttTarget, SlackTarget, Target, WebhookTarget
from muster.domain.errors import MusterError
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.standard_webhook import webhook_key
from muster.domain.notifications.subscription import is_mail_address, is_web_address, problem_with_events
from muster.rpc.channel import is_loopback

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TARGETS = ("webhook", "slack", "mail")
_SUBSCRIPTION_KEYS = frozenset(
    {"name", "events", "minimum", "projects", "jobs", "owners", "labels", "secret_files", *_TARGETS}
)
_MAIL_KEYS = frozenset({"server", "sender", "security", "user", "password_file", "authority"})
_MQTT_KEYS = frozenset({"broker", "user", "password_file", "prefix", "authority", "cert", "key", "events", "telemetry"})
_WEB_KEYS = frozenset({"allow", "authority"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """What the file says."""

    subscriptions: tuple[EventSubscription, ...] = ()
    allowed: AllowedPlaces = field(default_factory=AllowedPlaces)
    authority: Path | None = None
    """Certificates that web targets may show beside those that the system knows."""
    mail: MailServer | None = None
    broker: BrokerPlace | None = None


def read_notify_file(file: Path) -> NotifySettings:
    """What a file says; raises MusterError, which names the place of a fault and never a secret."""
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MusterError(f"cannot read the subscriptions in {file}: {error}") from error
    try:
        return _settings(content, file.parent)
    except _FaultError as fault:
        raise MusterError(f"the subscriptions in {file}: {fault}") from None


class _FaultError(Exception):
    """What is wrong with the file."""


def _settings(content: Mapping[str, Any], folder: Path) -> NotifySettings:
    _known(content, frozenset({"subscription", "mail", "web", "mqtt"}), "the file")
    web = _table(content, "web")
    _known(web, _WEB_KEYS, "[web]")
    allowed = AllowedPlaces.parse(_texts(web, "allow", "[web]"))
    listed = content.get("subscription", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise _FaultError("subscriptions begin with [[subscription]]")
    mail = _mail_server(_table(content, "mail"), folder) if "mail" in content else None
    mqtt = _table(content, "mqtt")
    own = (_mqtt_subscription(mqtt),) if "mqtt" in content else ()
    subscriptions = (*own, *(_subscription(each, folder, allowed) for each in listed))
    names = [each.name for each in subscriptions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _FaultError(f"the name {twice} is there twice")
    if mail is None and (
        without := next((each for each in subscriptions if isinstance(each.target, MailTarget)), None)
    ):
        raise _FaultError(f"{without.name} sends mail, and there is no [mail] with a server")
    return NotifySettings(
        subscriptions=subscriptions,
        allowed=allowed,
        authority=_path(web, "authority", "[web]", folder),
        mail=mail,
        broker=_broker(mqtt, folder) if own else None,
    )


def _subscription(said: Mapping[str, Any], folder: Path, allowed: AllowedPlaces) -> EventSubscription:
    name = said.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _FaultError(f"{name!r} is no name of a subscription: use lower-case letters, digits and hyphens")
    _known(said, _SUBSCRIPTION_KEYS, name)
    events = _texts(said, "events", name) or ("*",)
    if problem := problem_with_events(events):
        raise _FaultError(f"{name} {problem}; docs/event-types.md has all")
    return EventSubscription(
        name=name,
        target=_target(said, name, folder, allowed),
        events=events,
        minimum=_word(EventSeverity, said, "minimum", name, EventSeverity.INFO),
        projects=_texts(said, "projects", name),
        jobs=_text(said, "jobs", name) or "*",
        owners=_texts(said, "owners", name),
        labels=_labels(said, name),
    )


def _target(said: Mapping[str, Any], name: str, folder: Path, allowed: AllowedPlaces) -> Target:
    kinds = [kind for kind in _TARGETS if kind in said]
    if len(kinds) != 1:
        raise _FaultError(f"{name} needs one target: webhook, slack or mail")
    if kinds == ["mail"]:
        to = _texts(said, "mail", name)
        if not to or not all(map(is_mail_address, to)):
            raise _FaultError(f"{name}: mail is a list of addresses like ada@example.com")
        return MailTarget(to=to)
    if kinds == ["slack"]:
        return SlackTarget(url=_url(_secret(_path(said, "slack", name, folder), name), name, allowed))
    files = _texts(said, "secret_files", name)
    if not files:
        raise _FaultError(f"{name}: a webhook needs secret_files with the key that signs; the newest comes first")
    keys = []
    for file in files:
        key = webhook_key(_secret(folder / file, name))
        if key is None:
            raise _FaultError(f"{name}: {file} holds no key like whsec_… (24 to 64 bytes in base64)")
        keys.append(key)
    return WebhookTarget(url=_url(_text(said, "webhook", name), name, allowed), keys=tuple(keys))


def _url(text: str, name: str, allowed: AllowedPlaces) -> str:
    """The address of a target; may be a secret, so no fault repeats it."""
    if not is_web_address(text):
        raise _FaultError(f"{name}: the address of its target is not like https://host/path")
    parts = urlsplit(text)
    if parts.scheme == "http" and not allowed.lists(parts.hostname or ""):
        raise _FaultError(f"{name}: plain http is only for hosts that `allow` in [web] names")
    return text


def _mail_server(said: Mapping[str, Any], folder: Path) -> MailServer:
    _known(said, _MAIL_KEYS, "[mail]")
    security = _word(MailSecurity, said, "security", "[mail]", MailSecurity.STARTTLS)
    host, _, port = _text(said, "server", "[mail]").rpartition(":")
    sender = _text(said, "sender", "[mail]")
    if not host or not port.isdecimal():
        raise _FaultError("[mail] needs a server like mail.example.com:587")
    if not is_mail_address(sender):
        raise _FaultError("[mail] needs a sender like muster@example.com")
    password = _path(said, "password_file", "[mail]", folder)
    user = _text(said, "user", "[mail]")
    if (password is None) != (not user):
        raise _FaultError("[mail] needs both user and password_file, or neither")
    return MailServer(
        host=host,
        port=int(port),
        sender=sender,
        security=security,
        user=user,
        password=_secret(password, "[mail]") if password is not None else "",
        authority=_path(said, "authority", "[mail]", folder),
    )


def _mqtt_subscription(said: Mapping[str, Any]) -> EventSubscription:
    """What of all events goes to the broker."""
    return EventSubscription(name="mqtt", target=MqttTarget(), events=_texts(said, "events", "[mqtt]") or ("*",))


def _broker(said: Mapping[str, Any], folder: Path) -> BrokerPlace:
    _known(said, _MQTT_KEYS, "[mqtt]")
    parts = urlsplit(_text(said, "broker", "[mqtt]"))
    try:
        port = parts.port
    except ValueError:
        port = None
    if (
        parts.scheme not in {"mqtt", "mqtts"}
        or not parts.hostname
        or parts.path.strip("/")
        or parts.username is not None
    ):
        raise _FaultError("[mqtt] needs a broker like mqtts://broker.example.com:8883")
    tls = parts.scheme == "mqtts"
    if not tls and not is_loopback(f"{parts.hostname}:{port or 1883}"):
        raise _FaultError("[mqtt]: mqtt:// is only for a broker on this machine; say mqtts://")
    prefix = (_text(said, "prefix", "[mqtt]") or "muster/v1").strip("/")
    if set("+#") & set(prefix) or prefix.startswith("$"):
        raise _FaultError("[mqtt]: a prefix has no + and no #, and begins with no $")
    password, cert, key = (_path(said, name, "[mqtt]", folder) for name in ("password_file", "cert", "key"))
    if (cert is None) != (key is None):
        raise _FaultError("[mqtt] needs both cert and key, or neither")
    return BrokerPlace(
        host=parts.hostname,
        port=port or (8883 if tls else 1883),
        tls=tls,
        user=_text(said, "user", "[mqtt]"),
        password=_secret(password, "[mqtt]") if password is not None else "",
        prefix=prefix,
        authority=_path(said, "authority", "[mqtt]", folder),
        cert=cert,
        key=key,
        telemetry=_telemetry(said),
    )


def _telemetry(said: Mapping[str, Any]) -> bool:
    """Whether a broker is sent what nodes use."""
    wanted = _texts(said, "telemetry", "[mqtt]")
    if odd := sorted(set(wanted) - {"nodes"}):
        raise _FaultError(f'[mqtt]: telemetry is ["nodes"], and not {odd[0][:40]}')
    return bool(wanted)


def _known(said: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    if odd := sorted(said.keys() - keys):
        raise _FaultError(f"{where} has no key {odd[0]!r}; there are {', '.join(sorted(keys))}")


def _table(said: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = said.get(key, {})
    if not isinstance(found, dict):
        raise _FaultError(f"[{key}] is a table")
    return found


def _text(said: Mapping[str, Any], key: str, where: str) -> str:
    found = said.get(key, "")
    if not isinstance(found, str):
        raise _FaultError(f"{where}: {key} is a text")
    return found


def _texts(said: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = said.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise _FaultError(f"{where}: {key} is a list of texts")
    return tuple(found)


def _labels(said: Mapping[str, Any], where: str) -> Mapping[str, str]:
    found = said.get("labels", {})
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise _FaultError(f'{where}: labels are like {{paper = "icml"}}')
    return found


def _word(words: Any, said: Mapping[str, Any], key: str, where: str, otherwise: Any) -> Any:  # noqa: ANN401 - an enum
    found = _text(said, key, where)
    if found and found not in list(words):
        raise _FaultError(f"{where}: {key} is one of {', '.join(words)}")
    return words(found) if found else otherwise


def _path(said: Mapping[str, Any], key: str, where: str, folder: Path) -> Path | None:
    """The file that a key names, from the folder of the file of subscriptions."""
    found = _text(said, key, where)
    return folder / found if found else None


def _secret(file: Path | None, where: str) -> str:
    if file is None:
        raise _FaultError(f"{where}: the name of a file is missing")
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _FaultError(
            f"{where}: cannot read {file}: {getattr(error, 'strerror', None) or 'it is no text'}"
        ) from None
