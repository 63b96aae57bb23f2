#!/usr/bin/python3
"""Two users whose names Unicode takes for one text, over the whole server: neither is let in with
what the other has, sees what the other is told, or changes what the other said.

usage: equivalent.py --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
"""
import os
import unicodedata
import urllib.parse
import uuid

from client import Backend, Client, arguments, identity_token, pb

COMPOSED = "caf\u00e9"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


class City:
    """The backend, and devices of users."""

    def __init__(self, given):
        with open(given.key, encoding="utf-8") as file:
            self.key = file.read()
        self.given, self.backend = given, Backend(given)

    def signer(self, user):
        given = self.given
        return lambda nonce: identity_token(self.key, given.kid, given.app, user, nonce)

    def device(self, user, device=None, token=b""):
        given = self.given
        client = Client(given.port, given.ca, given.app, given.host, device=device,
                        features=["live", "signal"])
        client.token = token
        client.login(self.signer(user))
        return client

    def call(self, method, path, *names):
        quoted = [urllib.parse.quote(name, safe="") for name in names]
        status, body = self.backend.call(method, path.format(*quoted))
        assert status in (200, 204), (path, status, body)
        return body

    def publish(self, room, sender, text):
        return self.backend.publish(room, sender, text)


def heard(client):
    """What came to the client before the answer to a PING: nothing that was sent before is left."""
    client.send(pb.Ping(next_ms=60000), 77)
    bodies = []
    while True:
        body, _ = client.read()
        if isinstance(body, pb.Pong):
            return bodies
        if isinstance(body, pb.Delta):
            client.apply(body)
        assert not isinstance(body, (pb.Close, pb.Error)), body
        bodies.append(body)


def texts(client, room):
    return [m.parts[0].content.decode() for m in client.messages(uuid.UUID(room).bytes)]


def rooms(city, user):
    found = city.call("GET", "/v1/users/{}/conversations", user)["conversations"]
    return {conversation["id"] for conversation in found}


def memberships(city):
    """A room of each with ben, and one of all three."""
    first, second = city.backend.create(COMPOSED, "ben"), city.backend.create(DECOMPOSED, "ben")
    both = city.backend.create(COMPOSED, DECOMPOSED, "ben")
    assert rooms(city, COMPOSED) == {first, both}, rooms(city, COMPOSED)
    assert rooms(city, DECOMPOSED) == {second, both}, rooms(city, DECOMPOSED)
    status, refused = city.publish(first, DECOMPOSED, "as another")
    assert status in (400, 403, 404, 409), (status, refused)
    return first, second, both


def feeds(city, devices, first, second):
    """Each is told of the own room only, while both are connected: messages, and who types."""
    ben, composed, decomposed = devices
    for number in range(20):
        assert city.publish(first, "ben", f"private {number}")[0] == 201
    while len(texts(composed, first)) < 20:
        composed.expect(pb.Delta)
    for room, listener, other in ((first, composed, decomposed), (second, decomposed, composed)):
        conversation = uuid.UUID(room).bytes
        ben.send(pb.Signal(conversation=conversation, kind=pb.SIGNAL_KIND_TYPING))
        signal = listener.expect(pb.Signal)
        assert (signal.conversation, signal.user) == (conversation, "ben"), signal
        assert not any(isinstance(body, pb.Signal) for body in heard(other))
    heard(decomposed)
    assert texts(decomposed, first) == [], "a message of the other's room came"


def changes(city, devices, both):
    """Neither changes or deletes what the other said; who said it does."""
    _, composed, decomposed = devices
    conversation, message = uuid.UUID(both).bytes, os.urandom(16)
    part = pb.Part(mime_type="text/plain", content=b"mine")
    sent = composed.mutate(send_message=pb.SendMessage(
        conversation=conversation, message=message, parts=[part]))
    assert sent.code == 0, sent
    forged = pb.EditMessage(message=message, parts=[pb.Part(
        mime_type="text/plain", content=b"forged")])
    assert decomposed.mutate(edit_message=forged).code == 4003, "edited by another"
    deletion = pb.DeleteMessage(message=message, for_everyone=True)
    assert decomposed.mutate(delete_message=deletion).code == 4003, "deleted by another"
    path = f"/v1/conversations/{both}/messages"
    told = city.call("GET", path)["messages"]
    assert [(m["sender"], m["parts"][0]["text"]) for m in told] == [(COMPOSED, "mine")], told
    forged.parts[0].content = b"edited"
    assert composed.mutate(edit_message=forged).code == 0


def tokens(city, devices, first):
    """What lets the one in lets the other in nowhere."""
    _, composed, decomposed = devices
    # The other logs in on the same device: it is that user's from then on (SES-14).
    lent = city.device(COMPOSED)
    before = lent.token
    assert texts(lent, first) != []
    lent.close()
    taken = city.device(DECOMPOSED, device=lent.device)
    heard(taken)
    assert texts(taken, first) == [], "another user's feed"
    taken.close()
    back = Client(city.given.port, city.given.ca, city.given.app, city.given.host,
                  device=lent.device)
    back.token = before
    back.connect()
    back.send(back.hello())
    body, _ = back.read()
    assert isinstance(body, pb.Challenge), f"let in with a token of another user: {body}"
    back.socket.close()
    # Asked who it is, a connection goes on with a token of its own user only (SES-21).
    city.call("POST", "/v1/users/{}/sessions/revoke?reauthenticate=true", COMPOSED)
    asked = composed.expect(pb.Challenge)
    composed.send(pb.Authenticate(identity_token=city.signer(DECOMPOSED)(asked.nonce)))
    body = asked
    while not isinstance(body, (pb.Close, pb.Welcome)):
        body, _ = composed.read()
    assert isinstance(body, pb.Close), "went on as another user"
    # The end of all sessions of the one is none of the other's.
    city.call("POST", "/v1/users/{}/sessions/revoke", COMPOSED)
    heard(decomposed)
    city.device(DECOMPOSED, device=decomposed.device, token=decomposed.token).close()


def main(given):
    assert COMPOSED != DECOMPOSED
    city = City(given)
    first, second, both = memberships(city)
    print("three rooms, each with its own")
    devices = [city.device(user) for user in ("ben", COMPOSED, DECOMPOSED)]
    feeds(city, devices, first, second)
    print("told of their own, live")
    changes(city, devices, both)
    print("changed by their authors only")
    tokens(city, devices, first)
    print("let in as themselves only: ok")


if __name__ == "__main__":
    main(arguments(__doc__))
