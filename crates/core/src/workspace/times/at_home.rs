//! What stays at home because of what a copy holds: a tool would take it for made of that.

use crate::values::paths::TreePath;
use crate::workspace::environment::EnvironmentKind;

/// For one copy, each with the path that is the reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AtHome {
    /// A link that leads to files whose times are not ours to set.
    pub by_times: Option<TreePath>,
    /// What compiled modules may have been made of.
    pub compiled: Option<TreePath>,
}

impl AtHome {
    /// Why an environment of this kind is not there.
    pub fn why(&self, kind: EnvironmentKind) -> Option<String> {
        let link = self
            .by_times
            .as_ref()
            .filter(|_| kind.is_judged_by_times())
            .map(|link| {
                format!("{link} is another link, into an environment or out of the repository")
            });
        let is_module = kind == EnvironmentKind::ExtensionModule;
        let source = self.compiled.as_ref().filter(|_| is_module);
        link.or(source.map(|path| format!("{path} changed, and it may be made of that")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_keeps_its_own_kinds_at_home() {
        use EnvironmentKind as K;
        let path = Some(TreePath::new("src/x"));
        let none = AtHome::default();
        let link = AtHome {
            by_times: path.clone(),
            ..AtHome::default()
        };
        let source = AtHome {
            compiled: path,
            ..AtHome::default()
        };
        for kind in [
            K::PythonVenv,
            K::NodeModules,
            K::CargoTarget,
            K::Tox,
            K::Nox,
            K::Eggs,
            K::EggInfo,
            K::GeneratedFile,
            K::ExtensionModule,
            K::Named,
        ] {
            assert_eq!(none.why(kind), None);
            assert_eq!(link.why(kind).is_some(), kind.is_judged_by_times());
            assert_eq!(source.why(kind).is_some(), kind == K::ExtensionModule);
        }
    }
}
