import CConsole
import HTTP1

/// The console's pages, scripts and styles, which are part of the program.
enum ConsoleFiles {
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
    ]

    static let names: [String] = (0..<rouse_console_file_count()).map {
        String(cString: rouse_console_file_name($0))
    }

    /// By their order. Answers that are not taken share them.
    private static let contents: [[UInt8]] = names.indices.map { index in
        var length = 0
        let start = rouse_console_file(Int32(index), &length)
        return Array(UnsafeBufferPointer(start: start, count: length))
    }

    static func file(named name: String) -> HTTPResponse? {
        guard let index = names.firstIndex(of: name),
            let type = types[String(name.split(separator: ".").last ?? "")]
        else { return nil }
        return HTTPResponse(
            status: 200,
            // Another version of the server has other files at the same addresses.
            headers: [("content-type", type), ("cache-control", "no-cache")],
            body: contents[index])
    }
}
