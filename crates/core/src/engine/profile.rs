//! `engines/profiles/*.toml`: knobs of a lane that are no secret, under one name. A profile opens nothing, names no
//! program, no record and no address.

use serde::Deserialize;

use crate::task::contract::{LimitChanges, Stage};
use crate::values::ids::EngineId;

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub id: String,
    pub title: String,
    pub engine: EngineId,
    /// The pair that is asked for; a record must admit it.
    pub provider: String,
    pub model: String,
    /// Where neither a flag nor a variable names one.
    pub stage: Stage,
    pub limits: ProfileLimits,
}

/// Limits where neither a flag nor a variable says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileLimits {
    pub engine_wall_seconds: u32,
    pub engine_idle_seconds: u32,
    pub model_calls: u32,
    pub model_tokens: u32,
}

impl Profile {
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let profile: Self = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        let named = format!("{}.toml", profile.id);
        match file.rsplit('/').next() == Some(named.as_str()) {
            true => Ok(profile),
            false => Err(format!(
                "{file}: a profile lies in a file of its name, {named}"
            )),
        }
    }

    pub fn limits(&self) -> LimitChanges {
        LimitChanges {
            engine_wall_seconds: Some(self.limits.engine_wall_seconds),
            engine_idle_seconds: Some(self.limits.engine_idle_seconds),
            model_calls: Some(self.limits.model_calls),
            model_tokens: Some(self.limits.model_tokens),
            ..LimitChanges::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../../../engines/profiles/qwen-local.toml");

    #[test]
    fn a_profile_holds_knobs_and_nothing_else() {
        let profile = Profile::parse("profiles/qwen-local.toml", TEXT).unwrap();
        assert_eq!(
            (profile.engine.as_str(), profile.provider.as_str()),
            ("case", "qwen-local")
        );
        assert_eq!(profile.limits().model_calls, Some(200));
        for more in [
            "base_url = \"http://127.0.0.1:1/v1\"",
            "bin = \"/opt/ca\"",
            "credential = \"env:KEY\"",
            "allow = true",
        ] {
            let text = format!("{more}\n{TEXT}");
            assert!(Profile::parse("qwen-local.toml", &text).is_err(), "{more}");
        }
        assert!(Profile::parse("other.toml", TEXT).is_err());
    }
}
