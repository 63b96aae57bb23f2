import Model
import Wire

// Metadata of conversations: values by key path, told as one object (MSG-25).
extension Work {
    func changeMetadata(
        _ app: AppID, _ request: ChangeMetadata, by actor: Actor
    ) throws(RuleFailure) -> MetadataRecord {
        try require(!request.changes.isEmpty, .missingField, "no changes")
        var conversation = try reachableConversation(app, request.conversation, actor)
        var metadata = try metadata(of: conversation)
        guard request.baseVersion == 0 || request.baseVersion == metadata.version else {
            throw .refused(.versionConflict, "the metadata has version \(metadata.version)")
        }
        try change(&metadata, by: request.changes)
        let changed = metadata
        try deliver(.metadata, object: [], joining: 0, in: &conversation) {
            _ throws(RuleFailure) in try self.put(changed)
        }
        note(
            WebhookEventRecord(
                app: app, kind: .metadataChanged, conversation: conversation.conversation,
                version: metadata.version, user: actor.name))
        return metadata
    }

    /// Carries the changes out in order, all or none. A value and values below it cannot both be:
    /// the newer wins.
    func change(
        _ metadata: inout MetadataRecord, by changes: [MetadataChange]
    ) throws(RuleFailure) {
        guard changes.count <= limits.metadataValues else {
            throw .refused(.limit, "more than \(limits.metadataValues) changes")
        }
        var values = try values(of: metadata)
        for change in changes {
            try checkPath(change.path)
            let path = change.path
            values.removeAll { Self.isBelow($0.path, path) }
            if change.removed { continue }
            guard change.value.utf8.count <= limits.metadataValueBytes else {
                throw .refused(.tooLarge, "a value of more than \(limits.metadataValueBytes) bytes")
            }
            values.removeAll { Self.isBelow(path, $0.path) }
            values.append(MetadataValue(path: path, value: change.value))
        }
        guard values.count <= limits.metadataValues else {
            throw .refused(.limit, "more than \(limits.metadataValues) values")
        }
        values.sort { left, right in
            left.path.lexicographicallyPrecedes(right.path) {
                $0.utf8.lexicographicallyPrecedes($1.utf8)
            }
        }
        metadata.state = MetadataState(values: values).encoded
        guard metadata.state.count <= limits.metadataBytes else {
            throw .refused(.tooLarge, "more than \(limits.metadataBytes) bytes of metadata")
        }
        metadata.version += 1
    }

    private func values(of metadata: MetadataRecord) throws(RuleFailure) -> [MetadataValue] {
        do throws(WireError) {
            return try MetadataState(encoded: metadata.state).values
        } catch {
            throw .store(.corrupt("metadata: \(error)"))
        }
    }

    /// Whether the path is `other` or leads further down from it: key by key the same bytes.
    private static func isBelow(_ path: [String], _ other: [String]) -> Bool {
        path.starts(with: other) { $0.isExactly($1) }
    }

    private func checkPath(_ path: [String]) throws(RuleFailure) {
        try require(!path.isEmpty, .missingField, "no path")
        guard path.count <= limits.metadataDepth else {
            throw .refused(.limit, "a path of more than \(limits.metadataDepth) keys")
        }
        for key in path {
            guard (1...limits.metadataKeyBytes).contains(key.utf8.count),
                key.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else {
                throw .refused(
                    .malformed,
                    "a key of a metadata path must have 1 to \(limits.metadataKeyBytes) bytes in "
                        + "UTF-8, without control characters")
            }
        }
    }
}
