"""Publishes with the client in Python that openapi-generator made: publish_pydantic.py URL KEY."""

import sys

import rouse_pydantic as rouse

url, key = sys.argv[1:3]
client = rouse.ApiClient(rouse.Configuration(host=url, access_token=key))
conversations, users = rouse.ConversationsApi(client), rouse.UsersApi(client)
room = conversations.create_conversation(
    rouse.ConversationInput(participants=["anna", "ben"]), idempotency_key="pydantic-room")
message = rouse.MessageInput(
    sender="anna", parts=[rouse.PartInput(mime_type="text/plain", text="Dinner at eight?")],
    push=rouse.Push(title="Anna", body="Dinner at eight?", sound=rouse.PushSound("bell.caf")))
first, again = (
    conversations.publish_message(room.id, message, idempotency_key="pydantic-1")
    for _ in range(2))
listed = conversations.list_messages(room.id)
inbox = users.list_user_conversations("ben")
row = next(one for one in inbox.conversations if one.id == room.id)
print("message", first.id)
print("again", again.id)
print("listed", len(listed.messages), listed.messages[0].parts[0].text)
print("inbox", row.unread, row.last_message.parts[0].text)
try:
    conversations.publish_message("0190a1b2-c3d4-7123-8456-000000000000", message)
except rouse.ApiException as problem:
    print("refused", problem.status, rouse.Problem.from_json(problem.body).code)
