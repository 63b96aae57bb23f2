/// What the shells' completion knows of the commands, from their table.
struct CompletionTable {
    /// What may come after the words of a command's name so far.
    let next: [(words: String, names: [(name: String, summary: String)])]
    let options: [(command: String, options: [CommandOption])]
    /// The forms of values; those of an option that is the same in all commands stand once.
    let values: [(pattern: ValuePattern, form: ValueForm)]
    let operands: [(command: String, form: ValueForm)]

    enum ValuePattern: Equatable {
        case everywhere(String)
        case of(command: String, option: String)
    }

    init(_ commands: [CommandDescription]) {
        var next: [String: [(name: String, summary: String)]] = [:]
        for command in commands {
            for (index, word) in command.words.enumerated() {
                let before = command.words[..<index].joined(separator: " ")
                let isWhole = index == command.words.count - 1
                let summary = isWhole ? command.summary : "\(word) ..."
                if let place = next[before]?.firstIndex(where: { $0.name == word }) {
                    if isWhole { next[before]?[place].summary = summary }
                } else {
                    next[before, default: []].append((word, summary))
                }
            }
        }
        self.next = next.sorted { $0.key < $1.key }.map { (words: $0.key, names: $0.value) }
        options = commands.map { (command: $0.name, options: $0.options) }
        operands = commands.compactMap { command in
            guard let first = command.operands.first else { return nil }
            let form = ValueForm(first)
            return form.hasSuggestions ? (command: command.name, form: form) : nil
        }
        values = Self.values(commands)
    }

    private static func values(
        _ commands: [CommandDescription]
    ) -> [(pattern: ValuePattern, form: ValueForm)] {
        var forms: [String: [(command: String, form: ValueForm)]] = [:]
        for command in commands {
            for option in command.options {
                guard let form = option.form else { continue }
                forms[option.name, default: []].append((command.name, form))
            }
        }
        var values: [(pattern: ValuePattern, form: ValueForm)] = []
        for (option, uses) in forms.sorted(by: { $0.key < $1.key }) {
            let isFlagElsewhere = commands.contains { command in
                command.options.contains { $0.name == option && $0.value == nil }
            }
            if let first = uses.first, uses.allSatisfy({ $0.form == first.form }), !isFlagElsewhere
            {
                values.append((.everywhere(option), first.form))
            } else {
                values += uses.map { (.of(command: $0.command, option: option), $0.form) }
            }
        }
        return values
    }
}

extension ValueForm {
    /// Whether there is anything to offer.
    var hasSuggestions: Bool { !words.isEmpty || takesFiles || takesDirectories }

    /// As the scripts have it: words, and `@files` or `@directories`; `@any` where nothing can be
    /// offered.
    var scriptWords: String {
        let marks =
            (takesFiles ? ["@files"] : []) + (takesDirectories ? ["@directories"] : [])
        return hasSuggestions ? (words + marks).joined(separator: " ") : "@any"
    }
}

extension Rouse {
    static let completionCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "completion", summary: "print what lets a shell complete commands",
                operands: ["bash|zsh"],
                examples: [
                    "source <(rouse completion bash)",
                    "rouse completion bash > /etc/bash_completion.d/rouse",
                    "rouse completion zsh > /usr/local/share/zsh/site-functions/_rouse",
                ],
                notes: """
                    Commands, options, the words that may stand for a value, settings after --set,
                    and files. It is made from the table by which this program reads its command
                    line: print it anew after an update.
                    """),
            run: { arguments in
                let table = CompletionTable(commands.map(\.description))
                let isBash = arguments.operands[0] == "bash"
                Terminal.print(isBash ? table.bash : table.zsh, terminator: "")
                return ExitStatus.success
            })
    ]
}

// MARK: The scripts

extension CompletionTable {
    /// `case` branches of a shell function that prints one line.
    private func branches(_ rows: [(pattern: String, line: String)]) -> String {
        rows.map { "        \($0.pattern)) echo \(Self.quoted($0.line)) ;;\n" }.joined()
    }

    /// In single quotes, as both shells read it.
    private static func quoted(_ text: String) -> String {
        "'"
            + text.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: "'\\''") + "'"
    }

    /// The functions that both shells share: what a command takes, by name.
    private var tables: String {
        let valueRows = values.map { row in
            switch row.pattern {
            case .everywhere(let option):
                (pattern: "*' --\(option)'", line: row.form.scriptWords)
            case .of(let command, let option):
                (pattern: "'\(command) --\(option)'", line: row.form.scriptWords)
            }
        }
        let nextRows = next.map { row in
            (pattern: "'\(row.words)'", line: row.names.map(\.name).joined(separator: " "))
        }
        let optionRows = options.map { row in
            let names = (row.options.map(\.name) + ["help"]).map { "--" + $0 }
            return (pattern: "'\(row.command)'", line: names.joined(separator: " "))
        }
        let operandRows = operands.map { row in
            (pattern: "'\(row.command)'", line: row.form.scriptWords)
        }
        return """
            # What may come after the words of a command so far.
            _rouse_next() {
                case "$1" in
            \(branches(nextRows))\
                esac
            }

            # The options of a command.
            _rouse_options() {
                case "$1" in
            \(branches(optionRows))\
                esac
            }

            # What may stand for the value of an option; nothing: it is a flag.
            _rouse_value() {
                case "$1 $2" in
            \(branches(valueRows))\
                esac
            }

            # What may stand for the first word after a command.
            _rouse_operand() {
                case "$1" in
            \(branches(operandRows))\
                esac
            }

            # Sets `command` to the command that the words name, and `count` to how many follow it;
            # `value` is what the last of them waits for, if it is an option.
            _rouse_walk() {
                local word isHelp=''
                command='' count=0 value=''
                for word in "$@"; do
                    if [[ -n $value ]]; then
                        value=''
                    elif [[ $word == -* ]]; then
                        [[ $word == *=* ]] || value="$(_rouse_value "$command" "$word")"
                    elif [[ -z $command && $word == help ]]; then
                        isHelp=yes
                    elif [[ $count == 0 && \
            " $(_rouse_next "$command") " == *" $word "* ]]; then
                        command="${command:+$command }$word"
                    else
                        count=$((count + 1))
                    fi
                done
                [[ -z $isHelp ]] || count=help
            }

            """
    }

    private static func head(_ shell: String) -> String {
        "# Completion of rouse \(Rouse.version) for \(shell), "
            + "made by `rouse completion \(shell)`.\n"
    }

    var bash: String {
        Self.head("bash") + "\n" + tables + """

            # Adds what compgen finds for the last of the words.
            _rouse_take() {
                local current="${@: -1}"
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY \\
                    < <(compgen "${@:1:$#-1}" -- "$current")
            }

            _rouse_offer() {
                local word words=() current="$2"
                for word in $1; do
                    case "$word" in
                    @files) compopt -o filenames; _rouse_take -f "$current" ;;
                    @directories) compopt -o filenames; _rouse_take -d "$current" ;;
                    @any) ;;
                    *=) compopt -o nospace; words+=("$word") ;;
                    *) words+=("$word") ;;
                    esac
                done
                _rouse_take -W "${words[*]}" "$current"
            }

            _rouse() {
                local current="${COMP_WORDS[COMP_CWORD]}" command count value words=() index
                COMPREPLY=()
                # Readline takes `--option=value` for three words.
                for ((index = 1; index < COMP_CWORD; index++)); do
                    if [[ ${COMP_WORDS[index]} == = && ${COMP_WORDS[index - 1]} == --* ]]; then
                        continue
                    fi
                    words+=("${COMP_WORDS[index]}")
                done
                if [[ $current == = ]]; then current=''; fi
                _rouse_walk "${words[@]}"
                if [[ -n $value ]]; then
                    _rouse_offer "$value" "$current"
                elif [[ $current == -* ]]; then
                    [[ $count == help ]] || _rouse_offer "$(_rouse_options "$command")" "$current"
                else
                    _rouse_offer "$(_rouse_next "$command")" "$current"
                    [[ $count != 0 ]] || _rouse_offer "$(_rouse_operand "$command")" "$current"
                fi
            }

            complete -F _rouse rouse

            """
    }

    var zsh: String {
        let described = next.map { row in
            let names = row.names.map { name in
                Self.quoted("\(name.name):\(name.summary)")
            }
            return "        '\(row.words)') described=(\(names.joined(separator: " "))) ;;\n"
        }.joined()
        return "#compdef rouse\n" + Self.head("zsh") + "\n" + tables + """

            _rouse_offer() {
                local word
                for word in ${=1}; do
                    case "$word" in
                    @files) _files ;;
                    @directories) _files -/ ;;
                    @any) ;;
                    *=) compadd -S '' -- "$word" ;;
                    *) compadd -- "$word" ;;
                    esac
                done
            }

            _rouse() {
                local command count value current="${words[CURRENT]}"
                local -a described
                _rouse_walk "${(@)words[2,CURRENT-1]}"
                if [[ -n $value ]]; then
                    _rouse_offer "$value"
                    return
                fi
                if [[ $current == --*=* ]]; then
                    value="$(_rouse_value "$command" "${current%%=*}")"
                    compset -P '*='
                    _rouse_offer "$value"
                    return
                fi
                if [[ $current == -* ]]; then
                    [[ $count == help ]] || _rouse_offer "$(_rouse_options "$command")"
                    return
                fi
                case "$command" in
            \(described)\
                esac
                (( $#described )) && _describe 'command' described
                [[ $count != 0 ]] || _rouse_offer "$(_rouse_operand "$command")"
            }

            if [[ $funcstack[1] == _rouse ]]; then _rouse "$@"; else compdef _rouse rouse; fi

            """
    }
}
