//! What a model costs: amounts and prices as whole millionths, never as floats. No price is built in;
//! every one comes from a file of the operator's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A larger file is not read as prices.
pub const MAX_PRICES: u64 = 256 << 10;
/// Tokens a price is for.
const PER_TOKENS: u128 = 1_000_000;
const MICROS: u64 = 1_000_000;
/// Whole units; a larger amount is a typing error, and every number stays below 2^53.
const MOST: u64 = 1_000_000_000;

/// Reads `12`, `0.5` or `3.000001` as millionths. Nothing else is an amount.
pub fn micros(text: &str) -> Result<u64, &'static str> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return Err("an amount is digits, and a point with up to six more");
    }
    if part.len() > 6 {
        return Err("an amount has at most six digits behind its point");
    }
    let units = whole.parse::<u64>().ok().filter(|units| *units <= MOST);
    let units = units.ok_or("an amount is at most 1000000000")?;
    let part: u64 = format!("{part:0<6}").parse().unwrap_or(0);
    Ok(units * MICROS + part)
}

/// Millionths as they are written by people: `0.50`, `3.000001`.
pub fn shown(micros: u64) -> String {
    let part = format!("{:06}", micros % MICROS);
    let kept = part.trim_end_matches('0').len().max(2);
    format!("{}.{}", micros / MICROS, &part[..kept])
}

/// What a million tokens cost, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input_micros: u64,
    /// Input that the provider had in a cache.
    pub cached_input_micros: u64,
    pub output_micros: u64,
}

impl Price {
    /// What tokens cost, rounded up. `cached` are those of the input.
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> u64 {
        let cached = cached.min(input);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = of(input - cached, self.input_micros)
            .saturating_add(of(cached, self.cached_input_micros))
            .saturating_add(of(output, self.output_micros));
        u64::try_from(sum.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }
}

/// What a run may spend on its model, and how that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpendLimit {
    pub micros: u64,
    pub price: Price,
}

/// A price file: models by the names that are admitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prices(BTreeMap<String, Price>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    models: BTreeMap<String, PriceRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    input: String,
    cached_input: Option<String>,
    output: String,
}

impl Prices {
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let file: PriceFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let price = |(name, row): (String, PriceRow)| {
            let amount = |field: &str, text: &str| {
                micros(text).map_err(|why| format!("models.{name:?}.{field}: {why}"))
            };
            let input_micros = amount("input", &row.input)?;
            let cached = row.cached_input.as_deref();
            let price = Price {
                input_micros,
                // A cache nobody named a price for is counted as if there were none.
                cached_input_micros: cached
                    .map_or(Ok(input_micros), |text| amount("cached_input", text))?,
                output_micros: amount("output", &row.output)?,
            };
            Ok((name, price))
        };
        let rows = file.models.into_iter().map(price);
        rows.collect::<Result<_, String>>().map(Self)
    }

    pub fn of(&self, model: &str) -> Option<Price> {
        self.0.get(model).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_digits_and_nothing_else() {
        for (text, want) in [
            ("0", 0),
            ("12", 12_000_000),
            ("0.5", 500_000),
            ("3.000001", 3_000_001),
            ("1000000000", 1_000_000_000_000_000),
        ] {
            assert_eq!(micros(text), Ok(want), "{text}");
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1,5",
            "0.0000001",
            "1 ",
            "1000000001",
            "0x1",
            "nan",
        ] {
            assert!(micros(text).is_err(), "{text:?}");
        }
        for (amount, want) in [(0, "0.00"), (500_000, "0.50"), (3_000_001, "3.000001")] {
            assert_eq!(shown(amount), want);
        }
    }

    #[test]
    fn tokens_cost_what_the_file_says_rounded_up() {
        let price = Price {
            input_micros: 2_500_000,
            cached_input_micros: 250_000,
            output_micros: 10_000_000,
        };
        for (input, cached, output, want) in [
            (0, 0, 0, 0),
            (1_000_000, 0, 0, 2_500_000),
            (1_000_000, 1_000_000, 0, 250_000),
            (1_000_000, 400_000, 100_000, 1_500_000 + 100_000 + 1_000_000),
            (1, 0, 0, 3),
            (0, 7, 0, 0),
            (10, 99, 0, 3),
        ] {
            assert_eq!(
                price.cost(input, cached, output),
                want,
                "{input} {cached} {output}"
            );
        }
        let dear = Price {
            input_micros: u64::MAX,
            ..price
        };
        assert_eq!(dear.cost(u64::MAX, 0, u64::MAX), u64::MAX, "it never wraps");
    }

    #[test]
    fn a_price_file_names_models_and_takes_no_floats() {
        let read = |text: &str| Prices::read(text.as_bytes());
        let prices = read("[models.\"a/b:c\"]\ninput = \"1.5\"\noutput = \"6\"\n").unwrap();
        let price = prices.of("a/b:c").unwrap();
        assert_eq!(
            (price.cached_input_micros, price.output_micros),
            (1_500_000, 6_000_000)
        );
        assert_eq!(prices.of("a/b"), None);
        for bad in [
            "",
            "[models.m]\ninput = 1.5\noutput = \"6\"\n",
            "[models.m]\ninput = \"1.5\"\n",
            "[models.m]\ninput = \"-1\"\noutput = \"6\"\n",
            "[models.m]\ninput = \"1\"\noutput = \"6\"\nextra = \"1\"\n",
            "[models.m]\ninput = \"1\"\noutput = \"6\"\n[models.m]\n",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        assert!(Prices::read(b"\xff").is_err());
    }
}
