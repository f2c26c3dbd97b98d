// Package enginetest runs the stores of package sqlstore on the engines and drivers that heed is
// tested with. It is its own module, with tests only, so that no program that imports heed has a
// driver to compile.
package enginetest
