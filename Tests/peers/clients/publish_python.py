"""Publishes with the client that openapi-python-client made: publish_python.py URL KEY."""

import sys

from rouse_attrs import AuthenticatedClient
from rouse_attrs.api.conversations import create_conversation, list_messages, publish_message
from rouse_attrs.api.users import list_user_conversations
from rouse_attrs.models import ConversationInput, MessageInput, PartInput, Problem, Push, CriticalSound

url, key = sys.argv[1:3]
client = AuthenticatedClient(base_url=url, token=key)
room = create_conversation.sync(
    client=client, body=ConversationInput(participants=["anna", "ben"]), idempotency_key="python-room")
message = MessageInput(
    sender="anna", parts=[PartInput(mime_type="text/plain", text="Dinner at eight?")],
    push=Push(title="Anna", body="Dinner at eight?", sound=CriticalSound(critical=True)))
first, again = (
    publish_message.sync(room.id, client=client, body=message, idempotency_key="python-1")
    for _ in range(2))
listed = list_messages.sync(room.id, client=client)
inbox = list_user_conversations.sync("ben", client=client)
lost = publish_message.sync(
    "0190a1b2-c3d4-7123-8456-000000000000", client=client, body=message)
assert isinstance(lost, Problem)
row = next(one for one in inbox.conversations if one.id == room.id)
print("message", first.id)
print("again", again.id)
print("listed", len(listed.messages), listed.messages[0].parts[0].text)
print("inbox", row.unread, row.last_message.parts[0].text)
print("refused", lost.status, lost.code)
