# Recipes for daily work. `just` alone lists them.

_list:
    @just --list --unsorted

# Build and run the built-in case; arguments go to `cto run`
demo *args:
    scripts/demo {{args}}

# The binary; `just build --dist` for packages and benchmarks
build *args:
    scripts/build {{args}}

# Everything CI checks: format, lints, all tests
test:
    scripts/test

# Other people's tools on what we sign
interop:
    scripts/interop

# A million hostile inputs for the parsers, and a million things said over all dialects; some minutes
fuzz count="1000000":
    CTO_FUZZ={{count}} cargo nextest run fuzz

# Format and lints only
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Format in place
fmt:
    cargo fmt --all

# Write the generated pages of docs/ and schemas/ anew
docs:
    CTO_REGENERATE=1 cargo nextest run tidy layers

# The numbers, as interleaved pairs
bench *args:
    scripts/bench {{args}}

# Honest changes to real projects must pass, breaking ones must not; needs the network to install them
real-projects *args:
    scripts/real-projects {{args}}

# Mutation tests of the code that decides
mutants *args:
    cargo mutants --package cto-core \
        --file 'crates/core/src/gate/*.rs' \
        --file 'crates/core/src/run/judge/*.rs' \
        --file 'crates/core/src/run/order.rs' \
        --file 'crates/core/src/run/facts.rs' \
        --file 'crates/core/src/run/rules.rs' \
        --file 'crates/core/src/values/paths.rs' \
        --file 'crates/core/src/values/verdict.rs' {{args}}

# Each row of the failure matrix must turn red without the check behind it; builds once a check, some twenty minutes
prove-matrix *args:
    scripts/prove-matrix {{args}}

# Every row of the attack table with its honest twin; some ten minutes
attacks:
    CTO_ATTACKS=all cargo nextest run -p cto-harness checks::attacks

# Every row of the failure table on every real lane, as root and as an ordinary user; some half an hour
lanes:
    CTO_LANES=all cargo nextest run -p cto-harness matrix::lanes

# Each attack on the checks must come through without the check behind it; builds once a check
prove-checks *args:
    scripts/prove-matrix --checks {{args}}

# Licenses, advisories, duplicate, foreign and unused crates
deny:
    cargo deny check
    cargo machete --version >/dev/null 2>&1 || cargo install --locked cargo-machete
    cargo machete
