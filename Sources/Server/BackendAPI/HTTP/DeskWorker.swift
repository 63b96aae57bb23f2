import EventLoop
import HTTP1
import Wire

/// Carries out what takes seconds on a thread of its own, one thing at a time. Loop-confined.
final class DeskWorker {
    /// Waiting: each has somebody who asked and waits.
    private static let waitingMax = 8

    private unowned let loop: Loop
    private var thread: LoopThread?
    private var jobs: Mailbox<Job>?
    private var answers: Mailbox<Answer>?
    private var open: [UInt64: (HTTPResponse) -> Void] = [:]
    private var last: UInt64 = 0

    private struct Job: Sendable {
        let number: UInt64
        let work: @Sendable () -> HTTPResponse
    }

    private struct Answer: Sendable {
        let number: UInt64
        let response: HTTPResponse
    }

    init(loop: Loop) { self.loop = loop }

    func carryOut(
        _ work: @escaping @Sendable () -> HTTPResponse,
        then respond: @escaping (HTTPResponse) -> Void
    ) {
        guard let jobs = (try? started()) else {
            return respond(Problem(.unavailable, "there is no thread for it").response)
        }
        last += 1
        open[last] = respond
        if !jobs.post(Job(number: last, work: work)) {
            open[last] = nil
            respond(Problem(.unavailable, "others wait for the same; try again").response)
        }
    }

    /// The thread is made when something is to be done for the first time.
    private func started() throws -> Mailbox<Job> {
        if let jobs { return jobs }
        let answers = Mailbox<Answer>(loop: loop, limit: nil) { [weak self] batch in
            for answer in batch { self?.open.removeValue(forKey: answer.number)?(answer.response) }
        }
        let (thread, jobs) = try LoopThread.startReturning(name: "work") { loop in
            Mailbox<Job>(loop: loop, limit: Self.waitingMax) { batch in
                for job in batch {
                    answers.post(Answer(number: job.number, response: job.work()))
                }
            }
        }
        (self.thread, self.jobs, self.answers) = (thread, jobs, answers)
        return jobs
    }

    /// What is under way ends by itself, and nobody hears of it.
    func close() {
        answers?.close()
        thread?.stop()
        open = [:]
        (thread, jobs, answers) = (nil, nil, nil)
    }
}
