import Testing

/// The lists of everything that an app has, piece by piece.
@Suite struct ListTests {
    /// What the list has under `name`, piece by piece, two rows asked for at a time.
    private func pieces(
        _ server: TestServer, _ key: String, _ path: String, _ name: String, of field: String
    ) throws -> [[String]] {
        var pieces: [[String]] = []
        var cursor = ""
        for _ in 0..<20 {
            let separator = path.contains("?") ? "&" : "?"
            let answer = try server.send("GET", path + "\(separator)limit=2" + cursor, key: key)
            #expect(answer.status == 200, "\(answer.body)")
            let rows = try answer.json[name]
            pieces.append(try (0..<rows.count).map { try #require(rows[$0][field].string) })
            guard let next = try answer.json["next"].string else { break }
            cursor = "&cursor=\(next)"
        }
        return pieces
    }

    @Test("users are listed by name, by how it begins, and those who are being deleted are not")
    func users() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let other = try server.makeApp("other")
        #expect(try pieces(server, key, "/v1/users", "users", of: "user") == [[]])
        let all = #"{"participants":["anna","anton","ben","B","an"]}"#
        #expect(try server.send("POST", "/v1/conversations", key: key, all).status == 201)
        let foreign = #"{"participants":["annabel"]}"#
        #expect(try server.send("POST", "/v1/conversations", key: other, foreign).status == 201)
        func listed(_ query: String = "") throws -> [[String]] {
            try pieces(server, key, "/v1/users" + query, "users", of: "user")
        }
        #expect(try listed() == [["B", "an"], ["anna", "anton"], ["ben"]])
        #expect(try listed("?prefix=an") == [["an", "anna"], ["anton"]])
        #expect(try listed("?prefix=ann") == [["anna"]])
        #expect(try listed("?prefix=zoe") == [[]])
        #expect(try server.send("GET", "/v1/users?prefix=a%0A", key: key).status == 400)
        #expect(try server.send("POST", "/v1/users/anton/suspend", key: key).status == 204)
        #expect(try server.send("DELETE", "/v1/users/anna", key: key).status == 202)
        // A name passed over leaves its piece short.
        #expect(try listed() == [["B", "an"], ["anton"], ["ben"]])
        let answer = try server.send("GET", "/v1/users?prefix=ant", key: key).json["users"]
        #expect(answer.count == 1)
        #expect(answer[0]["suspended"].flag == true)
    }

    @Test("conversations are listed by id, and those that were deleted are not")
    func conversations() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let other = try server.makeApp("other")
        func listed(_ key: String) throws -> [[String]] {
            try pieces(server, key, "/v1/conversations", "conversations", of: "id")
        }
        #expect(try listed(key) == [[]])
        let ids = (1...5).map { "0190a1b2-c3d4-7123-8456-00000000000\($0)" }
        for (number, id) in ids.enumerated() {
            let body = #"{"id":"\#(id)","participants":["anna","ben"],"receipts_off":true}"#
            let owner = number == 4 ? other : key
            #expect(try server.send("POST", "/v1/conversations", key: owner, body).status == 201)
        }
        #expect(try listed(key) == [[ids[0], ids[1]], [ids[2], ids[3]]])
        #expect(try listed(other) == [[ids[4]]])
        #expect(try server.send("DELETE", "/v1/conversations/\(ids[1])", key: key).status == 204)
        #expect(try listed(key) == [[ids[0]], [ids[2], ids[3]]])
        let message = #"{"parts":[{"mime_type":"text/plain","text":"hi"}]}"#
        let path = "/v1/conversations/\(ids[0])/messages"
        #expect(try server.send("POST", path, key: key, message).status == 201)
        let first = try server.send("GET", "/v1/conversations?limit=1", key: key)
        let row = try first.json["conversations"][0]
        #expect(row["participant_count"].number == 2 && row["position"].number == 1)
        #expect(row["receipts_off"].flag == true && row["distinct"].flag == false)
        #expect(row["creator"].string == nil)
        // A place in another list is none in this one.
        let next = try #require(try first.json["next"].string)
        #expect(
            try server.send("GET", "/v1/users?cursor=\(next)", key: key).status == 400)
        #expect(
            try server.send("GET", "/v1/conversations?cursor=\(next)", key: other).status == 400)
    }
}
