// The page with Preact's own checks, which complain of a key that a list has twice and of elements
// that cannot stand in one another.
import "preact/debug";
import "../../src/main.tsx";
