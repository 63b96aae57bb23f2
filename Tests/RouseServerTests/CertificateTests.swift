import Foundation
import Testing

@testable import RouseServer

@Suite struct CertificateTests {
    private static let day = UInt64(CertificateEnd.day)
    private let end = CertificateEnd(at: 100 * CertificateEnd.day)

    @Test("what is left is told in whole seconds, and less than none after the end")
    func left() {
        #expect(end.secondsLeft(100 * Self.day - 1_500) == 1)
        #expect(end.secondsLeft(100 * Self.day) == 0)
        #expect(end.secondsLeft(100 * Self.day + 1) == -1)
        #expect(end.secondsLeft(100 * Self.day + 1_500) == -2)
        #expect(end.text == "1970-04-11T00:00:00Z")
        #expect(end.leftText(98 * Self.day) == "2 days")
        #expect(end.leftText(98 * Self.day + 1) == "47 hours")
        #expect(end.leftText(100 * Self.day - 25_000) == "25 s")
    }

    @Test("an end is told from 14 days before it on, once a day, and when it has come")
    func reminded() {
        var reminder = CertificateReminder()
        #expect(reminder.isDue(end, wall: 86 * Self.day - 1) == false)
        #expect(reminder.isDue(end, wall: 86 * Self.day) == true)
        #expect(reminder.isDue(end, wall: 86 * Self.day + 5_000) == false)
        #expect(reminder.isDue(end, wall: 87 * Self.day - 1) == false)
        #expect(reminder.isDue(end, wall: 87 * Self.day) == true)
        #expect(reminder.isDue(end, wall: 100 * Self.day - 5_000) == true)
        #expect(reminder.isDue(end, wall: 100 * Self.day) == true)
        #expect(reminder.isDue(end, wall: 100 * Self.day + 5_000) == false)
        #expect(reminder.isDue(end, wall: 101 * Self.day) == true)
        // Another one that is good for long is not told of, nor is the one before any more.
        let other = CertificateEnd(at: 200 * CertificateEnd.day)
        #expect(reminder.isDue(other, wall: 102 * Self.day) == false)
        #expect(reminder.isDue(other, wall: 190 * Self.day) == true)
    }

    @Test("files count as changed when they stand still, once for each state")
    func settled() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-marks-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("file")
        func marks() -> [FileMark?] { [FileMark(file.path)] }
        try Data("one".utf8).write(to: file)
        var looks = FileLooks(marks())
        #expect(looks.isSettledChange(marks()) == false)
        #expect(looks.isSettledChange(marks()) == false)
        try Data("half".utf8).write(to: file)
        #expect(looks.isSettledChange(marks()) == false)
        // It was still being written.
        try Data("the whole".utf8).write(to: file)
        #expect(looks.isSettledChange(marks()) == false)
        #expect(looks.isSettledChange(marks()) == true)
        #expect(looks.isSettledChange(marks()) == false)
        // Refused for what passes with time: it is looked at again, each time once.
        looks.leaveOpen()
        #expect(looks.isSettledChange(marks()) == true)
        #expect(looks.isSettledChange(marks()) == false)
        try FileManager.default.removeItem(at: file)
        #expect(marks() == [nil])
        #expect(looks.isSettledChange(marks()) == false)
        #expect(looks.isSettledChange(marks()) == true)
        #expect(looks.isSettledChange(marks()) == false)
    }
}
