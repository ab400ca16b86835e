//! Where a credential comes from: a variable, a file or a command. A record names the place, never
//! the credential.

/// The ways the harness knows by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CredentialWay {
    /// The endpoint asks for none.
    None,
    /// An environment variable of the operator's.
    Variable(String),
    /// A file of the operator's, private to them.
    File(String),
    /// A program of the operator's and its arguments; what it prints is the credential.
    Command(Vec<String>),
}

/// Why a way is refused. Never holds any of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WayProblem {
    #[error("env: takes the name of a variable: letters, digits and underscores")]
    Variable,
    #[error("file: takes an absolute path")]
    File,
    #[error("command: takes the absolute path of a program, then its arguments")]
    Command,
}

impl CredentialWay {
    /// Reads `none`, `env:NAME`, `file:/PATH` or `command:/PROGRAM ARG…`. Any other text is a class
    /// in the operator's own words: shown, and not a way by itself.
    pub fn read(text: &str) -> Result<Option<Self>, WayProblem> {
        if text == "none" {
            return Ok(Some(Self::None));
        }
        let Some((word, value)) = text.split_once(':') else {
            return Ok(None);
        };
        match word {
            "env" => {
                let named = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                let good = !value.is_empty()
                    && value.len() <= 128
                    && value.bytes().all(named)
                    && !value.as_bytes()[0].is_ascii_digit();
                good.then(|| Some(Self::Variable(value.to_owned())))
                    .ok_or(WayProblem::Variable)
            }
            "file" => is_absolute(value)
                .then(|| Some(Self::File(value.to_owned())))
                .ok_or(WayProblem::File),
            "command" => {
                let words: Vec<String> =
                    value.split_ascii_whitespace().map(str::to_owned).collect();
                let good = words.first().is_some_and(|program| is_absolute(program));
                good.then_some(Some(Self::Command(words)))
                    .ok_or(WayProblem::Command)
            }
            _ => Ok(None),
        }
    }

    /// What a person may be shown: the kind, and the name of a variable.
    pub fn describe(&self) -> String {
        match self {
            Self::None => "none".into(),
            Self::Variable(name) => format!("the variable {name}"),
            Self::File(_) => "a file".into(),
            Self::Command(_) => "a command".into(),
        }
    }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/')
        && path.len() <= 4096
        && !path.split('/').any(|part| part == "..")
        && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_and_words() {
        let way = |text: &str| CredentialWay::read(text);
        assert_eq!(way("none"), Ok(Some(CredentialWay::None)));
        assert_eq!(
            way("env:OPENAI_API_KEY"),
            Ok(Some(CredentialWay::Variable("OPENAI_API_KEY".into())))
        );
        assert_eq!(
            way("file:/run/key"),
            Ok(Some(CredentialWay::File("/run/key".into())))
        );
        assert_eq!(
            way("command:/bin/credctl get x"),
            Ok(Some(CredentialWay::Command(
                ["/bin/credctl", "get", "x"].map(String::from).to_vec()
            )))
        );
        assert_eq!(way("pi-models-json-local-provider-no-secret"), Ok(None));
        assert_eq!(way("env:A=B"), Err(WayProblem::Variable));
        assert_eq!(way("env:"), Err(WayProblem::Variable));
        assert_eq!(way("env:1A"), Err(WayProblem::Variable));
        assert_eq!(way("file:key"), Err(WayProblem::File));
        assert_eq!(way("file:/a/../b"), Err(WayProblem::File));
        assert_eq!(way("command:credctl"), Err(WayProblem::Command));
        assert_eq!(way("command:"), Err(WayProblem::Command));
    }
}
