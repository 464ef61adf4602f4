// While a file cannot be read, nothing is said about names.
struct A { 1: Unknown a }
struct B { 1: }
