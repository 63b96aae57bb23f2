#!/usr/bin/python3
"""The client of driver.py with one defect: `mutant.py --defect NAME`, else as driver.py.

`rouse conform client --mutants` runs each; which cases must notice which is data of the test
program (ClientExpectations.swift).
"""
import time

import driver
from driver import CLASSES, Driver, Fault, pb

MUTANTS = {}


def mutant(name):
    def register(made):
        MUTANTS[name] = made
        return made
    return register


@mutant("no-backoff")
class NoBackoff(Driver):
    def delay(self):
        return 0


@mutant("backoff-without-chance")
class WithoutChance(Driver):
    def delay(self):
        if self.healthy:
            self.healthy, self.failures = False, 0
            return 0.5
        self.failures += 1
        return min(2 ** (self.failures - 1), 30)


@mutant("backoff-never-forgets")
class NeverForgets(Driver):
    count = 0

    def delay(self):
        self.count += 1
        return min(2 ** (self.count - 1), 30) * 0.6


@mutant("ping-unanswered")
class PingUnanswered(Driver):
    def take_Ping(self, _, request):
        pass


@mutant("pong-of-no-request")
class PongOfNoRequest(Driver):
    def take_Ping(self, _, request):
        super().take_Ping(_, 0)


@mutant("keepalive-as-it-likes")
class KeepaliveAsItLikes(Driver):
    def take_Welcome(self, welcome, request):
        welcome.keepalive_ms = 180000
        super().take_Welcome(welcome, request)


@mutant("gap-applied")
class GapApplied(Driver):
    def continues(self, delta):
        return True


@mutant("claims-the-head")
class ClaimsTheHead(Driver):
    def apply(self, delta):
        delta.to.seq = delta.head
        super().apply(delta)


@mutant("counts-entries")
class CountsEntries(Driver):
    def continues(self, delta):
        if not super().continues(delta):
            return False
        held = self.store["cursor"]
        new = [e.seq for e in delta.entries if held is None or e.seq > held[1]]
        return not new or held is None or new[0] == held[1] + 1


@mutant("reset-empties")
class ResetEmpties(Driver):
    def reset(self, delta):
        super().reset(delta)
        self.store["objects"] = {}


@mutant("reset-head-unsaid")
class ResetHeadUnsaid(Driver):
    def sync_body(self, reason):
        body = super().sync_body(reason)
        body.reset_head = 0
        return body


@mutant("reset-head-moves")
class ResetHeadMoves(Driver):
    def apply(self, delta):
        self.store["reset_head"] = delta.head
        super().apply(delta)


@mutant("retry-under-a-new-number")
class NewNumber(Driver):
    def take_Welcome(self, welcome, request):
        for waiting in self.store["outbox"]:
            self.store["number"] += 1
            waiting["number"] = self.store["number"]
        super().take_Welcome(welcome, request)


@mutant("taken-number-final")
class TakenNumberFinal(Driver):
    def is_of_another_life(self, result):
        return False


@mutant("floor-unminded")
class FloorUnminded(Driver):
    def send_mutations(self):
        held, self.floor = self.floor, 0
        super().send_mutations()
        self.floor = held


@mutant("acks-another-epoch")
class AcksAnotherEpoch(Driver):
    def is_shared(self):
        return True


@mutant("outbox-in-memory")
class OutboxInMemory(Driver):
    def __init__(self, given):
        super().__init__(given)
        self.store["outbox"] = []


@mutant("drain-at-once")
class DrainAtOnce(Driver):
    def take_Drain(self, drain, request):
        self.slot_at = time.monotonic()


@mutant("drain-ignored")
class DrainIgnored(Driver):
    def take_Drain(self, drain, request):
        pass


@mutant("superseded-comes-back")
class SupersededComesBack(Driver):
    def gave_way(self):
        self.come_back()


@mutant("class-ignored")
class ClassIgnored(Driver):
    def closed(self, close, retry):
        super().closed(close, retry if close.code in CLASSES else 1)


@mutant("retry-after-ignored")
class RetryAfterIgnored(Driver):
    def closed(self, close, retry):
        close.retry_after_ms = 0
        super().closed(close, retry)


@mutant("unknown-frame-taken")
class UnknownFrameTaken(Driver):
    def take_frame(self):
        if self.received[3] == 0x6F:
            self.received = self.received[:4] + bytes([4]) + self.received[5:]
        return super().take_frame()


@mutant("ignorable-refused")
class IgnorableRefused(Driver):
    def take_frame(self):
        if self.received[3] not in driver.FRAMES:
            raise Fault(4008)
        return super().take_frame()


@mutant("wrong-close-code")
class WrongCloseCode(Driver):
    def take_frame(self):
        try:
            return super().take_frame()
        except Fault as fault:
            raise Fault(4000 if fault.code != 4000 else 5004) from fault


@mutant("signal-never-ends")
class SignalNeverEnds(Driver):
    def lifetime(self, signal):
        return 3600


@mutant("sent-twice-after-a-challenge")
class SentTwice(Driver):
    def take_Welcome(self, welcome, request):
        self.sent = set()
        super().take_Welcome(welcome, request)
        self.send_mutations()


@mutant("inline-sync-not-repeated")
class InlineSyncNotRepeated(Driver):
    def take_Challenge(self, challenge, request):
        held = self.open_sync
        super().take_Challenge(challenge, request)
        self.open_sync = held


@mutant("two-syncs")
class TwoSyncs(Driver):
    def want_sync(self):
        self.open_sync = None
        super().want_sync()

    def take_SyncRequest(self, asked, request):
        self.want_sync()


@mutant("orphans-dropped")
class OrphansDropped(Driver):
    def keep(self, entry):
        place = f"conversation/{entry.conversation.hex()}/"
        if entry.WhichOneof("body") != "message" or place in self.store["objects"]:
            super().keep(entry)


@mutant("tombstones-ignored")
class TombstonesIgnored(Driver):
    def keep(self, entry):
        if entry.WhichOneof("body") != "tombstone":
            super().keep(entry)


@mutant("token-in-memory")
class TokenInMemory(Driver):
    def __init__(self, given):
        super().__init__(given)
        self.store["token"] = ""


@mutant("cursor-before-rows")
class CursorBeforeRows(Driver):
    def apply(self, delta):
        held = self.store["cursor"]
        self.store["cursor"] = [delta.to.epoch.hex(), delta.to.seq]
        self.store.save()
        self.send(pb.Ack(applied=delta.to.seq))
        time.sleep(0.3)
        self.store["cursor"] = held
        super().apply(delta)


@mutant("page-moves-the-cursor")
class PageMovesTheCursor(Driver):
    def take_Page(self, page, request):
        held = self.store["cursor"]
        self.store["cursor"] = [held[0], held[1] + len(page.entries)]
        super().take_Page(page, request)


@mutant("older-version-wins")
class OlderVersionWins(Driver):
    def keep(self, entry):
        entry.version = int(time.time() * 1000)
        super().keep(entry)


@mutant("refused-sent-at-once")
class RefusedSentAtOnce(Driver):
    def take_MutationResult(self, result, request):
        result.retry_after_ms = 0
        super().take_MutationResult(result, request)


@mutant("read-told-once")
class ReadToldOnce(Driver):
    def reads(self):
        told = super().reads()
        self.store["reads"] = {}
        self.store.save()
        return told


@mutant("sleeps-without-a-word")
class SleepsWithoutAWord(Driver):
    def do_sleep(self):
        self.is_open = False
        super().do_sleep()


@mutant("hints-dropped")
class HintsDropped(Driver):
    def notice(self, message, conversation):
        message.ClearField("hints")
        return super().notice(message, conversation)


@mutant("logs-in-after-logout")
class LogsInAfterLogout(Driver):
    def is_logout(self, mutation):
        return False


if __name__ == "__main__":
    given = driver.arguments()
    MUTANTS.get(given.defect, Driver)(given).run()
