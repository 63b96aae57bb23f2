/// A folder of a module that others enter by its doors alone.
struct Room {
    var folder: String
    /// The rooms it may enter; the ground floor it may enter without being named.
    var uses: [String] = []
    /// What others may use of it: types, and what it adds to types that are not its own.
    var doors: [String] = []
    /// Everything in it is for everybody.
    var isGround = false
}

/// Which declaration of one room the files of another name.
///
/// In one module the compiler lets every file call every other. Here a room's own are the types it
/// declares, with their members, and what it adds to a type that others add to as well, or that
/// stands in another room: a rule is a method of `Work`, whoever wrote it. So these are looked at:
/// types; and of shared types the functions, and values of extensions. What a door hands over may
/// be used.
///
/// A name is what its call looks like: functions of one name differ by their labels. Two rooms
/// that add one name with the same labels are told apart by nobody: that is a complaint, too.
struct InnerWalls {
    struct File {
        var room: String
        var name: String
        var tokens: [String]
        var declarations: [SourceDeclaration]
        /// For each token, the type whose member it is in.
        var owners: [String]

        init(room: String, name: String, text: String) {
            self.room = room
            self.name = name
            tokens = SourceTokens(text).all
            let finder = DeclarationFinder(tokens)
            declarations = finder.found
            owners = finder.owners
        }
    }

    struct Use: Hashable {
        var from: String
        var file: String
        var to: String
        var door: String
    }

    private struct Place {
        var room: String
        var file: String
        var declaration: SourceDeclaration
        /// Whether it has to be a door for others to use it.
        var isChecked: Bool
    }

    let rooms: [Room]
    let files: [File]
    /// Each use of what has to be a door.
    private(set) var uses: Set<Use> = []
    private let ground: Set<String>
    private var places: [String: [Place]] = [:]

    init(_ rooms: [Room], _ files: [File]) {
        self.rooms = rooms
        self.files = files
        ground = Set(rooms.filter(\.isGround).map(\.folder))
        var homes: [String: String] = [:]
        var adders: [String: Set<String>] = [:]
        for file in files {
            for declaration in file.declarations where !declaration.isPrivate {
                if declaration.kind == .type, declaration.owner.isEmpty {
                    homes[declaration.name] = file.room
                } else {
                    adders[declaration.owner, default: []].insert(file.room)
                }
            }
        }
        for file in files {
            for declaration in file.declarations {
                let owner = declaration.owner
                let isShared = homes[owner] != file.room || adders[owner]?.count ?? 0 > 1
                let isAdded =
                    declaration.kind == .function
                    || declaration.kind == .value
                        && (declaration.isInExtension || declaration.isStatic)
                let isChecked =
                    !declaration.isPrivate && !ground.contains(file.room)
                    && (owner.isEmpty || isShared && isAdded)
                places[declaration.name, default: []].append(
                    Place(
                        room: file.room, file: file.name, declaration: declaration,
                        isChecked: isChecked))
            }
        }
        uses = findUses()
    }

    // MARK: what is used

    private func findUses() -> Set<Use> {
        var uses: Set<Use> = []
        for file in files {
            let bound = Self.boundNames(file.tokens)
            for index in file.tokens.indices {
                for place in enteredBy(file, at: index, bound) {
                    uses.insert(
                        Use(
                            from: file.room, file: file.name, to: place.room,
                            door: place.declaration.signature))
                }
            }
        }
        return uses
    }

    /// Parameters and local values: a name of one of them, alone, is none of another room's.
    private static func boundNames(_ tokens: [String]) -> Set<String> {
        var names: Set<String> = []
        for (index, token) in tokens.enumerated().dropFirst() {
            let isIntroduced = ["let", "var", "for"].contains(tokens[index - 1])
            let next = index + 1 < tokens.count ? tokens[index + 1] : ""
            let isOfClosure = next == "in" || next == "," && tokens[index - 1] == "{"
            if isIntroduced || isOfClosure || next == ":" { names.insert(token) }
        }
        return names
    }

    private func enteredBy(_ file: File, at index: Int, _ bound: Set<String>) -> [Place] {
        let tokens = file.tokens
        guard let named = places[tokens[index]], named.contains(where: \.isChecked)
        else { return [] }
        let before = index > 0 ? tokens[index - 1] : ""
        let after = index + 1 < tokens.count ? tokens[index + 1] : ""
        let declares: Set<String> = [
            "func", "var", "let", "case", "struct", "enum", "class", "protocol", "typealias",
        ]
        let isLabel = after == ":" && (before == "(" || before == ",")
        if declares.contains(before) || isLabel { return [] }
        let meant = named.filter { Self.canMean($0.declaration, file, index, bound) }
        // What is its own, or the ground's, is meant first.
        let isOwn = meant.contains { place in
            place.room == file.room && (!place.declaration.isPrivate || place.file == file.name)
                || ground.contains(place.room) && !place.declaration.isPrivate
        }
        let others = meant.filter { $0.room != file.room && $0.isChecked }
        if isOwn || others.isEmpty { return [] }
        // One that may be meant is: that no two can be is looked at by itself.
        let room = rooms.first { $0.folder == file.room }
        let open = others.filter { place in room?.uses.contains(place.room) ?? false }
        return open.isEmpty ? others : open
    }

    /// Whether the name at this place, by what stands around it, can be one of the declaration.
    private static func canMean(
        _ declaration: SourceDeclaration, _ file: File, _ index: Int, _ bound: Set<String>
    ) -> Bool {
        let tokens = file.tokens
        let before = index > 0 ? tokens[index - 1] : ""
        let after = index + 1 < tokens.count ? tokens[index + 1] : ""
        if declaration.kind == .type { return before != "." || !declaration.owner.isEmpty }
        let owner = declaration.owner
        let receiver = index > 1 && before == "." ? tokens[index - 2] : ""
        // `.name`, of a type that is not written there.
        let isImplied = before == "." && !isOperand(receiver)
        if declaration.kind == .enumCase {
            return before == "." && (isImplied || owner.hasSuffix(receiver))
                && (after != "(" || !declaration.labels.isEmpty)
        }
        if isImplied, !declaration.isStatic { return false }
        if before != "." || receiver == "self" || receiver == "Self" {
            guard owner.isEmpty || isMember(of: owner, file.owners[index]) else { return false }
        } else if receiver.first?.isUppercase == true {
            guard declaration.isStatic, owner.hasSuffix(receiver) else { return false }
        }
        if declaration.kind == .value {
            return after != "(" && (before == "." || !bound.contains(tokens[index]))
        }
        guard after == "(" || after == "{" else { return false }
        let (parts, end) = after == "(" ? arguments(tokens, at: index + 1) : ([], index + 1)
        let call = parts.map { $0.count > 1 && $0[1] == ":" ? $0[0] : "_" }
        let trails = end < tokens.count && tokens[end] == "{"
        return declaration.takes(call) && (after == "(" || trails)
    }

    /// Whether code of one type calls members of the other without naming a value: both are the
    /// same, one lies in the other, or a transaction is a snapshot.
    private static func isMember(of owner: String, _ scope: String) -> Bool {
        let stores: Set<String> = ["StoreSnapshot", "StoreTransaction"]
        return scope == owner || scope.hasPrefix(owner + ".")
            || stores.contains(owner) && stores.contains(scope)
    }

    /// Whether a value can end with this token.
    private static func isOperand(_ token: String) -> Bool {
        let keywords: Set<String> = [
            "throw", "return", "in", "try", "case", "else", "where", "if", "guard", "for", "switch",
            "while",
        ]
        guard let last = token.last, !keywords.contains(token) else { return false }
        return last.isLetter || last.isNumber || [")", "]", "?", "!", "\""].contains(token)
    }

    // MARK: complaints

    /// Uses that go through no door, or into a room that is not for the one who uses it.
    func breaches() -> [String] {
        uses.compactMap { use in
            guard let from = rooms.first(where: { $0.folder == use.from }),
                let to = rooms.first(where: { $0.folder == use.to })
            else { return "\(use.file): no room \(use.from) or \(use.to) in the table" }
            if !from.uses.contains(to.folder) {
                return "\(use.file) uses \(use.door) of \(use.to), which \(use.from) may not enter"
            }
            if !to.doors.contains(use.door) {
                return "\(use.file) uses \(use.door), which is no door of \(use.to)"
            }
            return nil
        }.sorted()
    }

    /// Doors that nobody enters, and rights that nobody needs.
    func idle() -> [String] {
        var idle: [String] = []
        for room in rooms {
            for door in room.doors
            where !uses.contains(where: { $0.to == room.folder && $0.door == door }) {
                idle.append("\(room.folder): nobody enters by \(door)")
            }
            for other in room.uses
            where !uses.contains(where: { $0.from == room.folder && $0.to == other }) {
                idle.append("\(room.folder) does not use \(other)")
            }
        }
        return idle
    }

    /// Rooms of the table that use one which does not stand before them: there could be a circle.
    func upward() -> [String] {
        var below: Set<String> = []
        var found: [String] = []
        for room in rooms {
            for other in room.uses where !below.contains(other) {
                found.append("\(room.folder) uses \(other), which is not below it")
            }
            below.insert(room.folder)
        }
        return found
    }

    /// What has to be a door, and cannot be told by its name and labels from what another room
    /// has: of the same type, or of a value that is not told by its name.
    ///
    /// - Parameter apart: types whose members nobody takes for those of another.
    func doubles(apart: Set<String> = []) -> [String] {
        let doors = Set(rooms.flatMap(\.doors))
        var found: Set<String> = []
        for named in places.values {
            for place in named where place.isChecked && place.declaration.kind != .type {
                let own = place.declaration
                if own.kind == .value, !doors.contains(own.name) { continue }
                for other in named
                where other.room != place.room && other.declaration.signature == own.signature
                    && other.declaration.kind == own.kind
                    && !apart.contains(other.declaration.owner)
                {
                    let double = other.declaration
                    let areAlike = double.isStatic == own.isStatic && !double.isPrivate
                    guard double.owner == own.owner || areAlike && !own.isStatic else { continue }
                    let rooms = [place, other].map { "\($0.file) of \($0.room)" }.sorted()
                    found.insert("\(own.signature): \(rooms.joined(separator: " and "))")
                }
            }
        }
        return found.sorted()
    }

    /// Functions and shared values that no other file names: they are to be private.
    func exposed(namedElsewhere: (String, _ besides: File) -> Bool) -> [String] {
        files.flatMap { file in
            file.declarations.filter { declaration in
                (declaration.kind == .function
                    || declaration.kind == .value
                        && (declaration.isInExtension || declaration.isStatic))
                    && !declaration.isPrivate && !declaration.isPublic && !declaration.isImposed
                    && !namedElsewhere(declaration.name, file)
            }.map { "\(file.name): \($0.signature) is used by no other file" }
        }.sorted()
    }
}
