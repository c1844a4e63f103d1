#!/bin/sh
# pgdyno linked statically, with a target folder of its own: prints where it is.
#
# glibc warns that it would load the libraries of name services at run time; the guest asks for no names.
set -eu
cd "$(dirname "$0")/../.."
triple=$(rustc -vV | sed -n 's/^host: //p')
# With the target named, RUSTFLAGS do not reach procedural macros, which cannot be static.
flags="CARGO_TARGET_$(echo "$triple" | tr 'a-z-' 'A-Z_')_RUSTFLAGS"
env -u RUSTFLAGS "$flags=-C target-feature=+crt-static" OPENSSL_STATIC=1 \
  "${CARGO:-cargo}" build --quiet --locked --profile guest --target "$triple" --target-dir target/guest/cargo \
  --package pgdyno --bin pgdyno >&2
echo "$PWD/target/guest/cargo/$triple/guest/pgdyno"
