//! Ages, sizes and moments as a person types them. The caller passes the current time.

use std::fmt;
use std::str::FromStr;

use crate::values::time::Utc;

#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum NotAnAmount {
    #[error("not an age like 90s, 45m, 12h, 7d or 2w")]
    Age,
    #[error("not a size like 4096, 500K, 20M, 5G or 1T")]
    Size,
    #[error("not a date like 2026-01-31, a time like 2026-01-31T12:00:00Z, or an age like 7d")]
    Moment,
}

/// A span of time, written as a number and one letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Age {
    millis: i64,
}

impl Age {
    /// The moment this long before `now`, or the first moment that can be written.
    pub fn before(self, now: Utc) -> Utc {
        Utc::from_millis(now.as_millis().saturating_sub(self.millis)).unwrap_or(Utc::FIRST)
    }
}

impl FromStr for Age {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let (number, unit) = split(text).ok_or(NotAnAmount::Age)?;
        let seconds: i64 = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => return Err(NotAnAmount::Age),
        };
        let number = i64::try_from(number).map_err(|_| NotAnAmount::Age)?;
        let millis = number
            .checked_mul(seconds)
            .and_then(|n| n.checked_mul(1_000))
            .ok_or(NotAnAmount::Age)?;
        Ok(Self { millis })
    }
}

/// Bytes, read and shown in powers of 1024.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];

impl FromStr for Size {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let (number, unit) = split(text).ok_or(NotAnAmount::Size)?;
        let power = UNITS
            .iter()
            .position(|known| known.eq_ignore_ascii_case(unit))
            .ok_or(NotAnAmount::Size)?;
        let scale = 1u64 << (10 * power);
        number.checked_mul(scale).map(Self).ok_or(NotAnAmount::Size)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = (1..UNITS.len())
            .rev()
            .find(|power| self.0 >= 1 << (10 * power))
            .unwrap_or(0);
        let scale = 1u64 << (10 * power);
        match (power, self.0 / scale) {
            (0, bytes) => write!(f, "{bytes}"),
            // One digit after the point, cut and not rounded: a size is never shown as more than it
            // is.
            (_, whole @ 0..10) => {
                write!(f, "{whole}.{}{}", self.0 % scale * 10 / scale, UNITS[power])
            }
            (_, whole) => write!(f, "{whole}{}", UNITS[power]),
        }
    }
}

/// Digits, then a unit of letters or nothing.
fn split(text: &str) -> Option<(u64, &str)> {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit))
}

/// Which end of a day a date stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    First,
    Last,
}

const DAY_MILLIS: i64 = 86_400_000;

/// A date (a whole day of UTC), an RFC 3339 time, or an age.
pub fn parse_moment(text: &str, now: Utc, edge: Edge) -> Result<Utc, NotAnAmount> {
    if let Ok(age) = text.parse::<Age>() {
        return Ok(age.before(now));
    }
    if let Some(start) = Utc::day(text) {
        let last = || {
            Utc::from_millis(start.as_millis() + DAY_MILLIS - 1).map_err(|_| NotAnAmount::Moment)
        };
        return if edge == Edge::First {
            Ok(start)
        } else {
            last()
        };
    }
    Utc::from_rfc3339(text).ok_or(NotAnAmount::Moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utc(text: &str) -> Utc {
        text.parse().unwrap()
    }

    #[test]
    fn ages() {
        let now = utc("2026-01-31T12:00:00.000Z");
        for (text, want) in [
            ("0s", "2026-01-31T12:00:00.000Z"),
            ("90s", "2026-01-31T11:58:30.000Z"),
            ("45m", "2026-01-31T11:15:00.000Z"),
            ("12h", "2026-01-31T00:00:00.000Z"),
            ("30d", "2026-01-01T12:00:00.000Z"),
            ("2w", "2026-01-17T12:00:00.000Z"),
        ] {
            assert_eq!(
                text.parse::<Age>().unwrap().before(now),
                utc(want),
                "{text}"
            );
        }
        assert_eq!(
            "100000000000d".parse::<Age>().unwrap().before(now),
            Utc::FIRST
        );
        for bad in [
            "",
            "d",
            "7",
            "7 d",
            "7D",
            "7days",
            "-7d",
            "+7d",
            "1.5d",
            "7y",
            "9999999999999999999d",
            "999999999999999999s",
            "٧d",
        ] {
            assert_eq!(bad.parse::<Age>(), Err(NotAnAmount::Age), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        for (text, want) in [
            ("0", 0),
            ("4096", 4096),
            ("1K", 1024),
            ("500k", 512_000),
            ("20M", 20 << 20),
            ("5G", 5 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(text.parse::<Size>().unwrap(), Size(want), "{text}");
        }
        for bad in [
            "",
            "G",
            "5 G",
            "5GB",
            "5GiB",
            "-1",
            "1.5G",
            "5P",
            "16777216T",
            "99999999999999999999",
        ] {
            assert_eq!(bad.parse::<Size>(), Err(NotAnAmount::Size), "{bad}");
        }
    }

    #[test]
    fn sizes_are_shown_short_and_never_larger_than_they_are() {
        for (bytes, want) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (2047, "1.9K"),
            (10 << 10, "10K"),
            ((1 << 20) - 1, "1023K"),
            (5 << 30, "5.0G"),
            (u64::MAX, "16777215T"),
        ] {
            assert_eq!(Size(bytes).to_string(), want, "{bytes}");
        }
    }

    #[test]
    fn moments() {
        let now = utc("2026-01-31T12:00:00.000Z");
        for (text, edge, want) in [
            ("1d", Edge::First, "2026-01-30T12:00:00.000Z"),
            ("1d", Edge::Last, "2026-01-30T12:00:00.000Z"),
            ("2026-01-02", Edge::First, "2026-01-02T00:00:00.000Z"),
            ("2026-01-02", Edge::Last, "2026-01-02T23:59:59.999Z"),
            (
                "2026-01-02T03:04:05Z",
                Edge::First,
                "2026-01-02T03:04:05.000Z",
            ),
            (
                "2026-01-02T03:04:05.5+02:00",
                Edge::Last,
                "2026-01-02T01:04:05.500Z",
            ),
        ] {
            assert_eq!(parse_moment(text, now, edge), Ok(utc(want)), "{text}");
        }
        for bad in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-01-02T03:04:05",
            "2026-1-2",
            "20260102",
            "-000001-01-01",
            "9999-12-31T23:59:60Z x",
        ] {
            assert_eq!(
                parse_moment(bad, now, Edge::Last),
                Err(NotAnAmount::Moment),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_typed_panics(text in "\\PC{0,24}", bytes in any::<u64>()) {
            let now = Utc::from_millis(0).unwrap();
            for edge in [Edge::First, Edge::Last] {
                if let Ok(moment) = parse_moment(&text, now, edge) {
                    prop_assert!(moment >= Utc::FIRST);
                }
            }
            let _ = text.parse::<Size>();
            prop_assert!(!Size(bytes).to_string().is_empty());
        }

        #[test]
        fn shown_sizes_read_back_as_no_more(whole in 10u64..1024, power in 0usize..4) {
            let size = Size(whole << (10 * power));
            prop_assert!(size.to_string().parse::<Size>().unwrap() <= size);
        }
    }
}
