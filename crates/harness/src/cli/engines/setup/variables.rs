//! What variables of the environment say of the way to an endpoint: offered to the person, recorded
//! where they say yes, and obeyed nowhere else.

use std::path::Path;

use cto_core::operator::setup::{Question, answers};
use cto_core::records::model_endpoint::ProxyAddress;
use cto_core::values::digest::Digest;
use serde_json::{Map, Value, json};

use super::dialogue::Asked;
use super::endpoint::{MAX_EXTRA, Talk, Where};
use crate::host::failure::Failure;
use crate::host::way::operator_file::{self, Privacy};

const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const AUTHORITIES: [&str; 2] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];

impl Talk<'_> {
    /// Asks about each variable that would change the way to this endpoint. Where nobody can be asked,
    /// flags say it.
    pub(super) fn offers(&self, to: &Where) -> Result<Map<String, Value>, Failure> {
        let mut fields = Map::new();
        if !self.dialogue.has_somebody() {
            return Ok(fields);
        }
        let own = &self.args.endpoint;
        if own.proxy.is_none() && !to.endpoint.is_near() {
            fields.extend(self.proxy()?);
        }
        if own.ca_file.is_none() && to.endpoint.tls() {
            fields.extend(self.authorities()?);
        }
        Ok(fields)
    }

    fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|name| {
            let value = self.context.env.get(name)?.to_str()?;
            (!value.is_empty()).then(|| (*name, value.to_owned()))
        })
    }

    fn proxy(&self) -> Result<Map<String, Value>, Failure> {
        let none = Map::new();
        let Some((name, value)) = self.first(&PROXIES) else {
            return Ok(none);
        };
        let Some(ProxyAddress { host, port }) = ProxyAddress::of_variable(&value) else {
            self.dialogue
                .row("proxy", &format!("{name} names none that can be used"));
            return Ok(none);
        };
        let place = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let words = format!(
            "{name} names the proxy {place}. Go through it, and record it? yes or no (its credential, if it wants one: --proxy-credential)"
        );
        match self.takes(&words)? {
            true => Ok(Map::from_iter([("proxy".to_owned(), json!(place))])),
            false => Ok(none),
        }
    }

    fn authorities(&self) -> Result<Map<String, Value>, Failure> {
        let none = Map::new();
        let Some((name, file)) = self.first(&AUTHORITIES) else {
            return Ok(none);
        };
        if cto_gateway::is_of_the_system(Path::new(&file)) {
            return Ok(none);
        }
        let bytes = match operator_file::read(Path::new(&file), MAX_EXTRA, Privacy::Public) {
            Ok(bytes) => bytes,
            Err(why) => {
                let text = format!("the file of {name} {why}, so it is not offered");
                self.dialogue.row("authority", &text);
                return Ok(none);
            }
        };
        let words = format!(
            "{name} names a file of certificate authorities, {file}. Believe those alone for this endpoint, and record the file? yes or no"
        );
        match self.takes(&words)? {
            true => Ok(Map::from_iter([
                ("ca_file".to_owned(), json!(file)),
                ("ca_sha256".to_owned(), json!(Digest::of(&bytes))),
            ])),
            false => Ok(none),
        }
    }

    fn takes(&self, words: &str) -> Result<bool, Failure> {
        let asked = Asked {
            question: Question::Send,
            given: None,
            words: &crate::screen::output::tame(words),
            hidden: false,
        };
        self.dialogue.ask(&asked, answers::yes)
    }
}
