"""Pushes with aioapns, a provider's library that is not ours, and says what came of it.

usage: apns_client.py PORT AUTHORITY KEY KID TEAM TOPIC TOKENS

AUTHORITY and KEY are PEM files; TOKENS is a file with a device token a line. The first token gets
one push alone, since a connection has one stream until then; the others follow at once, but for the
last two, whose pushes come singly: a refusal leaves the connection one stream and has those on
their way refused, and aioapns waits for these for ever. Prints a JSON line for each push, in the
order of the tokens: [status, reason, timestamp].
"""
import asyncio
import json
import ssl
import sys

from aioapns import APNs, NotificationRequest, PushType
from aioapns.connection import APNsProductionClientProtocol


async def main(port, authority, key, kid, team, topic, tokens):
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    APNsProductionClientProtocol.APNS_SERVER = "localhost"
    APNsProductionClientProtocol.APNS_PORT = int(port)
    with open(key, encoding="ascii") as file:
        pem = file.read()
    client = APNs(
        key=pem, key_id=kid, team_id=team, topic=topic, ssl_context=context, max_connections=1,
        err_func=ignore,
    )
    with open(tokens, encoding="ascii") as file:
        names = file.read().split()

    async def push(number, token):
        request = NotificationRequest(
            device_token=token,
            message={"aps": {"alert": {"title": "aioapns", "body": f"push {number}"}}},
            push_type=PushType.ALERT, priority=10, collapse_key=f"push-{number}",
            time_to_live=3600,
        )
        answer = await asyncio.wait_for(client.send_notification(request), 30)
        return [int(answer.status), answer.description, answer.timestamp]

    answers = [await push(0, names[0])]
    many = list(enumerate(names))[1:-2]
    answers += await asyncio.gather(*(push(n, t) for n, t in many))
    for number in range(len(names) - 2, len(names)):
        answers.append(await push(number, names[number]))
    for answer in answers:
        print(json.dumps(answer))
    client.pool.close()


async def ignore(_request, _answer):
    pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
