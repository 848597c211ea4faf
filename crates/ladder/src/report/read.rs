//! Files of measurements, as they were saved.

use super::record::{Document, Measured, Trial};
use serde_json::Value;

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// It is no JSON.
    Json(String),
    /// It is JSON, but nothing that the ladder has written.
    Content {
        /// Where in the file.
        place: String,
        /// What is there.
        what: String,
    },
    /// It is longer than any that the ladder writes.
    Long {
        /// Its length.
        bytes: u64,
        /// What is taken.
        most: u64,
    },
    /// There is nothing in it.
    Empty,
}

impl core::fmt::Display for Foreign {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Foreign::Json(what) => write!(f, "this is no JSON: {what}"),
            Foreign::Content { place, what } => write!(f, "{place}: {what}"),
            Foreign::Long { bytes, most } => {
                write!(f, "it has {bytes} bytes, and a report takes {most} at most")
            }
            Foreign::Empty => f.write_str("nothing was measured in it"),
        }
    }
}

impl core::error::Error for Foreign {}

/// A file of all that is measured has less than a megabyte.
pub const MOST_BYTES: u64 = 64 << 20;

impl Foreign {
    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Foreign::Long { .. } => "leave out some of the sizes, or make several reports",
            _ => {
                "a report takes what `warpfold ladder run --save`, `ladder experiment --save` and `ladder report --measure --save` write"
            }
        }
    }
}

fn content(place: &str, what: impl core::fmt::Display) -> Foreign {
    Foreign::Content { place: place.into(), what: what.to_string() }
}

/// Everything in several files, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// Rungs.
    pub rungs: Vec<Measured>,
    /// Experiments.
    pub trials: Vec<Trial>,
    /// What is known of devices and of who measured.
    pub documents: Vec<Document>,
}

impl Gathered {
    /// Adds what a file holds: a list of rungs, an experiment, a list of both, or
    /// everything that was measured at once.
    ///
    /// # Errors
    /// Text that is nothing of that.
    pub fn add(&mut self, text: &str) -> Result<(), Foreign> {
        if text.len() as u64 > MOST_BYTES {
            return Err(Foreign::Long { bytes: text.len() as u64, most: MOST_BYTES });
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| Foreign::Json(error.to_string()))?;
        let before = self.rungs.len() + self.trials.len();
        match value {
            Value::Array(items) => {
                for (i, item) in items.into_iter().enumerate() {
                    self.item(&format!("item {}", i + 1), item)?;
                }
            }
            Value::Object(ref members) if members.contains_key("experiment") => {
                self.item("the experiment", value)?;
            }
            Value::Object(ref members) if members.contains_key("rung") => {
                self.item("the rung", value)?;
            }
            Value::Object(ref members) if members.contains_key("warpfold") => {
                let document: Document = serde_json::from_value(value)
                    .map_err(|error| content("the measurements", error))?;
                let first = self.rungs.len();
                for (i, rung) in document.rungs.iter().enumerate() {
                    self.item(&format!("rung {}", i + 1), rung.clone())?;
                }
                self.rungs[first..]
                    .iter_mut()
                    .for_each(|rung| rung.on.clone_from(&document.measured));
                self.trials.extend(document.experiments.iter().cloned());
                let rest = Document { rungs: Vec::new(), experiments: Vec::new(), ..document };
                self.documents.push(rest);
            }
            Value::Object(_) => {
                return Err(content(
                    "the object",
                    "it has neither \"rung\" nor \"experiment\" nor \"warpfold\"",
                ));
            }
            other => {
                return Err(content(
                    "the file",
                    format!("{}, not a list or an object", kind(&other)),
                ));
            }
        }
        if self.rungs.len() + self.trials.len() == before {
            return Err(Foreign::Empty);
        }
        Ok(())
    }

    fn item(&mut self, place: &str, value: Value) -> Result<(), Foreign> {
        let has = |name: &str| value.get(name).is_some_and(Value::is_string);
        if has("experiment") {
            self.trials.push(serde_json::from_value(value).map_err(|error| content(place, error))?);
        } else if has("rung") {
            self.rungs.push(serde_json::from_value(value).map_err(|error| content(place, error))?);
        } else {
            return Err(content(place, format!("{}, and no rung or experiment", kind(&value))));
        }
        Ok(())
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(text: &str) -> Result<Gathered, Foreign> {
        let mut all = Gathered::default();
        all.add(text).map(|()| all)
    }

    #[test]
    fn fields_may_be_missing() {
        let all = gathered(r#"[{"rung": "unroll8"}, {"rung": "x", "median": null, "more": [1]}]"#);
        let all = all.unwrap();
        assert_eq!((all.rungs.len(), all.rungs[0].median), (2, None));
        let trial = r#"{"experiment": "divergence", "findings": [], "tables": []}"#;
        assert_eq!(gathered(trial).unwrap().trials[0].experiment, "divergence");
        let both =
            format!(r#"{{"warpfold": "1", "rungs": [{{"rung": "a"}}], "experiments": [{trial}]}}"#);
        let all = gathered(&both).unwrap();
        assert_eq!((all.rungs.len(), all.trials.len(), all.documents.len()), (1, 1, 1));
    }

    #[test]
    fn foreign_files_are_told_from_ours() {
        for (text, says) in [
            ("", "no JSON"),
            ("{", "no JSON"),
            ("7", "a number"),
            ("\"rung\"", "a string"),
            ("[]", "nothing was measured"),
            ("{}", "neither"),
            ("[{}]", "item 1: an object"),
            ("[{\"rung\": 7}]", "item 1"),
            ("[{\"rung\": \"a\"}, null]", "item 2: null"),
            (r#"[{"rung": "a", "median": "fast"}]"#, "item 1: invalid type"),
            (r#"[{"rung": "a", "n": -1}]"#, "item 1"),
            (r#"[{"rung": "a", "median": 1e999}]"#, "no JSON: number out of range"),
            (r#"{"warpfold": "1", "rungs": [{}]}"#, "rung 1: an object"),
            (r#"{"warpfold": "1"}"#, "nothing was measured"),
            (r#"{"experiment": "a", "findings": 3, "tables": []}"#, "the experiment"),
        ] {
            let error = gathered(text).unwrap_err();
            assert!(error.to_string().contains(says), "{text}: {error}");
            assert!(error.hint().contains("--save"));
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(gathered(&deep), Err(Foreign::Json(_))));
    }
}
