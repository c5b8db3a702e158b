// The functions of docs/NUMERICS.md that operations are built from: tree, fold, exp and its relatives. Included inside a
// namespace of its own by every file that is compiled for a particular instruction set, so that no copy of a function is
// shared between them; numerics.h is the copy for everything else. No standard library function is called but the
// compiler's fma, sqrt and rint.
//
// Not a stand-alone header: the including file has included <bit>, <cmath>, <cstdint> and "base/inline.h".
