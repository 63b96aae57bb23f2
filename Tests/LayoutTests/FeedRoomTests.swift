import Foundation
import Testing

/// `Sources/Core/Feed` is one module, because its rules are methods of one class. Its folders are
/// rooms all the same: others enter them by the doors of `feedRooms`.
@Suite struct FeedRoomTests {
    static let folder = "Sources/Core/Feed"

    static let walls: InnerWalls = {
        let files = LayoutTests.swiftFiles(in: folder).map { file in
            InnerWalls.File(
                room: room(of: file), name: file.lastPathComponent,
                text: (try? String(contentsOf: file, encoding: .utf8)) ?? "")
        }
        return InnerWalls(feedRooms, files)
    }()

    /// `.`: a file beside the rooms.
    static func room(of file: URL) -> String {
        let parent = file.deletingLastPathComponent()
        return parent.path.hasSuffix(folder) ? "." : parent.lastPathComponent
    }

    @Test("every folder is a room of the table, and every room has files")
    func tableIsComplete() {
        let found = Set(Self.walls.files.map(\.room))
        #expect(found == Set(feedRooms.map(\.folder)))
    }

    @Test("no room uses one above it")
    func noCircles() {
        #expect(Self.walls.upward() == [])
    }

    @Test("a room is entered by its doors, by those who may")
    func throughDoors() {
        #expect(Self.walls.breaches() == [])
    }

    @Test("every door is used, and every right to enter")
    func nothingIdle() {
        #expect(Self.walls.idle() == [])
    }

    /// `ReadHints` names what it looks ahead for as the rules name it, and holds none of them.
    @Test("what has to be a door is told from everything else by its name and labels")
    func namesAreDistinct() {
        #expect(Self.walls.doubles(apart: ["ReadHints"]) == [])
    }

    @Test("what no other file names is private")
    func theRestIsPrivate() throws {
        // Nobody else can name what is not public.
        var files: [String: Set<String>] = [:]
        for file in Self.walls.files {
            for word in Set(file.tokens) { files[word, default: []].insert(file.name) }
        }
        for file in LayoutTests.swiftFiles(in: "Tests") {
            let text = try String(contentsOf: file, encoding: .utf8)
            guard text.contains("@testable import Feed") else { continue }
            for word in Set(SourceTokens(text).all) {
                files[word, default: []].insert(file.lastPathComponent)
            }
        }
        let exposed = Self.walls.exposed { name, file in
            !(files[name] ?? []).subtracting([file.name]).isEmpty
        }
        #expect(exposed == [])
    }

    @Test("the README names the rooms as the table does")
    func readMeAgrees() throws {
        let file = LayoutTests.root.appendingPathComponent("\(Self.folder)/README.md")
        let named = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .compactMap { $0.firstMatch(of: #/^\| `(\w+)` \|/#).map { String($0.1) } }
        #expect(named == feedRooms.map(\.folder).filter { $0 != "." })
    }
}

/// The walls see what they are to see.
@Suite struct InnerWallTests {
    static let rooms = [
        Room(folder: "Ground", isGround: true),
        Room(folder: "Low", doors: ["open(_:at:)", "Door", "Rule", "place"]),
        Room(folder: "High", uses: ["Low"]),
        Room(folder: "Stranger"),
    ]

    static func walls(_ room: String, _ text: String) -> InnerWalls {
        let ground = """
            final class Work { func put(_ row: Int) {} }
            enum Order { case shut(Int), wait }
            """
        let low = """
            struct Door { let width: Int; func swing() {} }
            struct Hatch {}
            enum Rule { static func held(by name: String) {} }
            extension Work {
                func open(_ door: Door, at place: Int = 0) {}
                func shut(_ door: Door) { private_(door) }
                private func lock() {}
            }
            extension Rule { static func kept() {} }
            extension Row { var place: Int { 0 } var weight: Int { 1 } }
            """
        let other = "extension Rule { static func told() {} }"
        return InnerWalls(
            rooms,
            [
                InnerWalls.File(room: "Ground", name: "Ground.swift", text: ground),
                InnerWalls.File(room: "Low", name: "Low.swift", text: low),
                InnerWalls.File(room: "Stranger", name: "Other.swift", text: other),
                InnerWalls.File(room: room, name: "New.swift", text: text),
            ])
    }

    @Test(
        "a use that goes through no door is named",
        arguments: [
            ("extension Work { func go() { shut(one) } }", "shut(_:)"),
            ("extension Work { func go() { step { self.shut(one) } } }", "shut(_:)"),
            ("func go(_ work: Work) { work.shut(one) }", "shut(_:)"),
            (#"func go() { print("\(work.shut(one))") }"#, "shut(_:)"),
            ("func go() { Rule.held(by: name) }", "held(by:)"),
            ("func go() { Rule.kept() }", "kept()"),
            ("func go(_ row: Row) { print(row.weight) }", "weight"),
            ("var hatch: Hatch?", "Hatch"),
            ("func go() { _ = [Hatch]() }", "Hatch"),
        ])
    func noDoor(_ text: String, _ name: String) {
        #expect(
            Self.walls("High", text).breaches().filter { $0.hasPrefix("New.swift") }
                == ["New.swift uses \(name), which is no door of Low"])
        #expect(
            Self.walls("Stranger", text).breaches().contains(
                "New.swift uses \(name) of Low, which Stranger may not enter"))
    }

    @Test(
        "a door is a door, and what only looks like another room's is none",
        arguments: [
            "extension Work { func go() { open(one); open(one, at: 2); put(3) } }",
            "func go(_ door: Door, _ row: Row) { door.swing(); print(door.width, row.place) }",
            "// shut(one)\n/* Hatch */ func go() { print(\"Hatch, shut(one)\") }",
            "func go() { take(.shut(1)); take(Order.shut(2)) }",
            "func go() { close(shut: 3); shut(1, 2); shut() }",
            "extension Work { private func shut(_ all: Int) {}; func go() { shut(1) } }",
            "func go(_ weight: Int) -> Int { weight + weight }",
        ])
    func door(_ text: String) {
        #expect(Self.walls("High", text).breaches().filter { $0.hasPrefix("New.swift") } == [])
    }

    @Test("a room that uses one above it, an idle door and a double name are found")
    func table() {
        let rooms = [Room(folder: "A", uses: ["B"]), Room(folder: "B", doors: ["unused()"])]
        let walls = InnerWalls(
            rooms,
            [
                InnerWalls.File(
                    room: "A", name: "A.swift", text: "extension Work { func go(_ one: Int) {} }"),
                InnerWalls.File(
                    room: "B", name: "B.swift", text: "extension Work { func go(_ two: Row) {} }"),
            ])
        #expect(walls.upward() == ["A uses B, which is not below it"])
        #expect(walls.idle() == ["A does not use B", "B: nobody enters by unused()"])
        #expect(walls.doubles() == ["go(_:): A.swift of A and B.swift of B"])
        #expect(
            walls.exposed { _, _ in false } == [
                "A.swift: go(_:) is used by no other file",
                "B.swift: go(_:) is used by no other file",
            ])
    }
}
