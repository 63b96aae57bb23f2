import Foundation
import Glibc
import Testing

/// Whose the files are that root's commands make: the service with another user has to open them.
@Suite(.enabled(if: geteuid() == 0, "only root gives files away"))
struct OwnerTests {
    /// Users of every Debian: daemon and bin.
    private static let (daemon, bin): (UInt32, UInt32) = (1, 2)

    private func owner(_ name: String, _ program: Program) -> [UInt32] {
        var status = stat()
        guard lstat(program.path(name), &status) == 0 else { return [] }
        return [status.st_uid, status.st_gid]
    }

    /// Runs a command as the user that the service has.
    private func asDaemon(_ words: String..., program: Program) throws -> Program.Outcome {
        let change = ["/usr/bin/setpriv", "--reuid=1", "--regid=1", "--clear-groups"]
        return try program.run(change + [Program.path] + words)
    }

    @Test("a store that root makes belongs to its folder's owner, who can open it")
    func newStore() throws {
        let program = try Program()
        chown(program.folder.path, Self.daemon, Self.bin)
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        for name in ["rouse.db", "rouse.db.lock"] {
            #expect(owner(name, program) == [Self.daemon, Self.bin], "\(name)")
        }
        let listed = try asDaemon("app", "list", program: program)
        #expect(listed.status == 0 && listed.output.contains("shop"), "\(listed.errors)")
    }

    @Test("a store that root restores belongs to the old one's owner, or else to its folder's")
    func restored() throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        #expect(try program.rouse("backup", "copy").status == 0)
        #expect(owner("copy", program) == [0, 0])
        chown(program.folder.path, Self.daemon, Self.daemon)
        chown(program.path("rouse.db"), Self.bin, Self.daemon)
        for name in ["rouse.db.lock", "rouse.db-wal", "rouse.db-shm"] {
            unlink(program.path(name))
        }
        #expect(try program.rouse("restore", "copy").status == 0)
        for name in ["rouse.db", "rouse.db.lock"] {
            #expect(owner(name, program) == [Self.bin, Self.daemon], "\(name)")
        }
        let fresh = try program.rouse("restore", "copy", "--store", "new.db")
        #expect(fresh.status == 0, "\(fresh.errors)")
        for name in ["new.db", "new.db.lock"] {
            #expect(owner(name, program) == [Self.daemon, Self.daemon], "\(name)")
        }
        #expect(try asDaemon("app", "list", "--store", "new.db", program: program).status == 0)
    }

    @Test("a file that another user has put into a folder for all gets no store")
    func shared() throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        #expect(try program.rouse("backup", "copy").status == 0)
        chown(program.path("rouse.db"), Self.daemon, Self.daemon)
        chmod(program.folder.path, 0o1777)
        #expect(try program.rouse("restore", "copy").status == 0)
        #expect(owner("rouse.db", program) == [0, 0])
    }

    @Test("a store that belongs to another is named with its owner, by --check-config as well")
    func another() throws {
        let program = try Program()
        #expect(try program.rouse("dev", "certificates", "tls").status == 0)
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        try program.write(
            "tls.certificate_file = tls/server.pem\ntls.key_file = tls/server.key\n", "rouse.conf")
        for name in ["", "tls", "tls/server.pem", "tls/server.key", "rouse.db.lock"] {
            chown(program.path(name), Self.daemon, Self.daemon)
        }
        for name in ["rouse.db", "rouse.db.lock"] {
            chown(program.path("rouse.db"), Self.daemon, Self.daemon)
            chown(program.path(name), 0, 0)
            let checked = try asDaemon(
                "serve", "--config", "rouse.conf", "--check-config", program: program)
            #expect(checked.status == 78, "\(checked.all)")
            let words = "\(name): permission denied: it belongs to root"
            #expect(checked.errors.contains(words), "\(checked.errors)")
            let listed = try asDaemon("app", "list", program: program)
            #expect(listed.status == 69, "\(listed.all)")
            #expect(listed.errors.contains("permission denied: it belongs to root"))
            #expect(!listed.errors.contains("errno"), "\(listed.errors)")
            chown(program.path(name), Self.daemon, Self.daemon)
        }
        chown(program.folder.path, 0, 0)
        let made = try asDaemon(
            "app", "create", "shop", "--new-store", "--store", "other.db", program: program)
        #expect(made.errors.contains("its folder belongs to root"), "\(made.errors)")
    }
}
