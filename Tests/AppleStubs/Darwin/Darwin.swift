// For what the store's engine asks of the system: what it names is POSIX, and has the same types there
// as here. What differs between the two is not checked.

@_exported import Glibc
