@main
struct Rouse {
    static func main() {}
}
