#!/usr/bin/python3
"""Who asks too much is told so, or not listened to (Protocol/connection.md, CON-15).

usage: rates.py --port P --ca FILE --app APP --key FILE --kid KID [--host H]

The server under test takes 4 connections of an address at once and one a second, 2 mutations of a
user at once and one a second, and 12 reads of history at once and one a second: a DIGEST counts as
ten.
"""
import os
import time

from client import Client, arguments, identity_token, pb


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    anna = Client(given.port, given.ca, given.app, given.host)
    anna.login(lambda nonce: identity_token(key, given.kid, given.app, "anna", nonce))
    kept, refused = [], 0
    for _ in range(40):
        client = Client(given.port, given.ca, given.app, given.host)
        try:
            client.connect()
            kept.append(client)
        except OSError:
            refused += 1
    assert refused > 0 and kept, f"{refused} refused, {len(kept)} taken"
    print(f"{len(kept)} connections taken, {refused} closed before TLS")

    limited = None
    for _ in range(50):
        result = anna.mutate(create_conversation=pb.CreateConversation(
            conversation=os.urandom(16), participants=["bob"]))
        if result.code:
            limited = result
            break
    assert limited and limited.code == 1002 and 0 < limited.retry_after_ms <= 1000, limited
    number, code = limited.number, limited.code
    while code == 1002:
        time.sleep(limited.retry_after_ms / 1000)
        anna.ask(pb.Mutation(number=number, create_conversation=pb.CreateConversation(
            conversation=os.urandom(16), participants=["bob"])))
        limited = anna.expect(pb.MutationResult)
        code = limited.code
    assert code == 0, limited
    print("told to wait: ok")

    # A SYNC so large that the server reads nothing more until it has carried it out; it is refused
    # instead, and the connection is heard again.
    code = 0
    while code == 0:
        code = anna.mutate(create_conversation=pb.CreateConversation(
            conversation=os.urandom(16), participants=["bob"])).code
    assert code == 1002, code
    large = anna.sync_body(pb.SYNC_REASON_SYNC_REQUEST)
    for number in range(32):
        large.mutations.add(
            number=anna.numbers + number,
            send_message=pb.SendMessage(
                conversation=os.urandom(16), message=os.urandom(16),
                parts=[pb.Part(mime_type="text/plain", content=b"x" * 8_090)]))
    anna.ask(large)
    answer = anna.expect_error()
    assert answer.code == 1002, answer
    anna.ask(pb.Ping())
    anna.expect(pb.Pong)
    print("heard after a large SYNC: ok")

    # Two DIGESTs at once are more than the rate, and a FETCH with them soon is.
    taken = 0
    for _ in range(50):
        anna.ask(pb.Digest(cursor=pb.Cursor(epoch=os.urandom(16), seq=1)))
        answer = anna.read()[0]
        while not isinstance(answer, (pb.Error, pb.DigestResult)):
            answer = anna.read()[0]
        if isinstance(answer, pb.Error):
            break
        taken += 1
    assert answer.code == 1002 and 0 < answer.retry_after_ms <= 10_000, answer
    assert 1 <= taken <= 3, taken
    time.sleep(1)
    anna.ask(pb.Fetch(conversation=os.urandom(16)))
    answer = anna.expect_error()
    assert answer.code == 4004, answer
    print("reads told to wait: ok")

    # Those in a HELLO count as well, though nobody knows at first whose they are: four each time,
    # of which two are the most that one costs, and hardly more than one comes back meanwhile.
    floor, refused = anna.numbers + 100, None
    for attempt in range(8):
        time.sleep(1.2)
        again = Client(given.port, given.ca, given.app, given.host, device=anna.device)
        again.token, again.cursor = anna.token, anna.cursor
        again.connect()
        hello = again.hello()
        for number in range(4):
            hello.sync.mutations.add(
                number=floor + 4 * attempt + number,
                create_conversation=pb.CreateConversation(
                    conversation=os.urandom(16), participants=["bob"]))
        again.send(hello)
        body, _ = again.read()
        if isinstance(body, pb.Close):
            refused = body
            break
        assert isinstance(body, pb.Welcome), body
        anna.token = body.session_token
        again.close()
    assert refused and refused.code == 1002 and 0 < refused.retry_after_ms <= 4000, refused
    print("mutations of a HELLO told to wait: ok")


if __name__ == "__main__":
    main(arguments(__doc__))
