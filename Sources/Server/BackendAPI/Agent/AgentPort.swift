public import EventLoop

extension BackendAPI {
    /// Where balancers ask for the agent's line, and what it is made of beside the readiness.
    public struct Agent: Sendable {
        /// A numeric address. There is no TLS: keep it private.
        public var host: String
        /// 0: a free one.
        public var port: UInt16
        /// From any thread.
        public var load: @Sendable () -> NodeLoad

        public init(
            host: String = "127.0.0.1", port: UInt16, load: @escaping @Sendable () -> NodeLoad
        ) {
            self.host = host
            self.port = port
            self.load = load
        }
    }
}

/// The agent cannot listen.
public struct AgentFailure: Error, CustomStringConvertible {
    let cause: StreamError

    public var description: String { "\(cause)" }
}

/// The door of balancers' agent checks: who connects gets one line, and the connection is closed.
enum AgentPort {
    /// Connections that may wait in the kernel.
    static let backlog = 16

    /// Listens until the loop ends; the port in use. No connection outlasts the turn that takes
    /// it: nothing is read, and the line always fits into the empty buffer of a new socket.
    static func listen(
        on loop: Loop, _ agent: BackendAPI.Agent, line: @escaping () -> String
    ) throws(AgentFailure) -> UInt16 {
        do throws(StreamError) {
            let listener = try Listener.listen(
                loop: loop, host: agent.host, port: agent.port, backlog: backlog)
            listener.onConnection = { stream in
                stream.write(Array(line().utf8))
                stream.close()
            }
            return listener.port
        } catch {
            throw AgentFailure(cause: error)
        }
    }
}
