//! Sections of a chip file: constants with their source and error, and every fault with its line.
//!
//! A section records the requested keys; [`Section::close`] reports all others and lists the requested ones. So the
//! code that reads a section also defines its keys. A constant inherits source and error from its section unless it has
//! its own, and a section from the one around it.
//!
//! It knows TOML and lines, not chips. Invariant: reading continues after a fault, so all faults of a file are reported
//! at once.

use super::unit::{BAND_ALLOWED, Dimension, Reason, band};
use super::{Constant, Fault};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Faults, constants and sources found so far.
pub struct Findings<'t> {
    file: &'t str,
    /// Offset of each line.
    lines: Vec<usize>,
    faults: Vec<Fault>,
    /// The constants, in the order of reading.
    pub constants: Vec<Constant>,
    /// The sources by their short names.
    pub sources: BTreeMap<String, String>,
}

impl<'t> Findings<'t> {
    pub fn new(file: &'t str, text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Self { file, lines, faults: Vec::new(), constants: Vec::new(), sources: BTreeMap::new() }
    }

    /// Returns the line number of a byte, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// Records a fault in the line of a byte.
    pub fn fault(&mut self, at: usize, text: impl Into<String>) {
        let (file, line) = (self.file.to_owned(), self.line(at));
        self.faults.push(Fault { file, line, text: text.into() });
    }

    /// Returns the faults in the order of their lines.
    pub(crate) fn into_faults(mut self) -> Vec<Fault> {
        self.faults.sort_by_key(|fault| fault.line);
        self.faults
    }

    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Checks the short name of a source at a byte; records a fault and returns `None` if there is no such source.
    fn source(&mut self, at: usize, path: &str, name: &str) -> Option<String> {
        if self.sources.contains_key(name) {
            return Some(name.to_owned());
        }
        let allowed = self.allowed_sources();
        self.fault(at, format!("{path} is {name:?}; {allowed}"));
        None
    }

    fn allowed_sources(&self) -> String {
        let names: Vec<&str> = self.sources.keys().map(String::as_str).collect();
        format!(
            "allowed: one of [sources]: {}",
            if names.is_empty() { "none yet".into() } else { names.join(", ") }
        )
    }
}

/// Precision of a constant.
#[derive(Clone, Copy)]
pub enum Precision {
    /// Built or counted: exact unless stated otherwise.
    Counted,
    /// Measured, in these dimensions: an error is required.
    Measured(&'static [Dimension]),
}

/// A table of the file being read.
pub struct Section<'t> {
    path: String,
    /// Offset of its name.
    at: usize,
    table: &'t DeTable<'t>,
    asked: Vec<String>,
    source: Option<String>,
    error: Option<&'t Spanned<DeValue<'t>>>,
    /// Values used for keys that the section lacks.
    base: Option<&'t DeTable<'t>>,
}

impl<'t> Section<'t> {
    /// Makes the section of the whole file.
    pub fn root(table: &'t DeTable<'t>) -> Self {
        Self { path: String::new(), at: 0, table, asked: Vec::new(), source: None, error: None, base: None }
    }

    /// Returns a copy as the base of another section.
    pub fn base(&self) -> Self {
        let Self { at, table, error, base, .. } = *self;
        Self {
            path: self.path.clone(),
            at,
            table,
            asked: Vec::new(),
            source: self.source.clone(),
            error,
            base,
        }
    }

    /// Inherits from `base` everything that this section lacks.
    pub fn inherit(&mut self, base: &Self) {
        self.base = Some(base.table);
        self.source = self.source.take().or_else(|| base.source.clone());
        self.error = self.error.or(base.error);
    }

    /// Returns the offset of the section's name.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns the full name of a key of this section.
    pub fn path(&self, key: &str) -> String {
        let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let key = if bare { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    /// Returns the value of a key and the offset of its name, and allows the key.
    fn entry(&mut self, key: &str) -> Option<(usize, &'t Spanned<DeValue<'t>>)> {
        self.asked.push(key.to_owned());
        let found = self.entries().find(|(name, _)| name.get_ref() == key);
        found.map(|(name, value)| (name.span().start, value))
    }

    /// Returns its own entries, then those of its base.
    fn entries(&self) -> impl Iterator<Item = (&'t Spanned<DeString<'t>>, &'t Spanned<DeValue<'t>>)> {
        self.table.iter().chain(self.base.into_iter().flatten())
    }

    /// Returns `true` if the key exists, without allowing it.
    pub fn has(&self, key: &str) -> bool {
        self.entries().any(|(name, _)| name.get_ref() == key)
    }

    /// Records a missing key as a fault.
    fn missing(&self, findings: &mut Findings<'_>, key: &str, what: &str) {
        findings.fault(self.at, format!("{} is missing; allowed: {what}", self.path(key)));
    }

    /// Returns a subsection, if it exists.
    pub fn child(&mut self, findings: &mut Findings<'_>, key: &str) -> Option<Self> {
        let (at, value) = self.entry(key)?;
        self.open(findings, key, at, value)
    }

    /// Returns a required subsection.
    pub(crate) fn required_child(&mut self, findings: &mut Findings<'_>, key: &str) -> Option<Self> {
        if !self.has(key) {
            self.missing(findings, key, &format!("a section [{}]", self.path(key)));
        }
        self.child(findings, key)
    }

    /// Returns the sections of a list such as `[[memory.controller]]`, or a single section.
    pub fn list(&mut self, findings: &mut Findings<'_>, key: &str) -> Vec<Self> {
        let Some((at, value)) = self.entry(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| self.open(findings, key, item.span().start, item)).collect()
            }
            _ => self.open(findings, key, at, value).into_iter().collect(),
        }
    }

    /// Returns all subsections not requested so far, with their names, in the order of the file.
    pub fn others(&mut self, findings: &mut Findings<'_>) -> Vec<(String, Self)> {
        let mut entries: Vec<_> = self
            .table
            .iter()
            .filter(|(name, _)| !self.asked.iter().any(|asked| asked == name.get_ref()))
            .map(|(name, value)| (name.span().start, name.get_ref().to_string(), value))
            .collect();
        entries.sort_by_key(|(at, ..)| *at);
        let mut sections = Vec::new();
        for (at, name, value) in entries {
            self.asked.push(name.clone());
            sections.extend(self.open(findings, &name, at, value).map(|section| (name, section)));
        }
        sections
    }

    fn open(
        &self,
        findings: &mut Findings<'_>,
        key: &str,
        at: usize,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<Self> {
        let path = self.path(key);
        let Some(table) = value.get_ref().as_table() else {
            findings.fault(at, format!("{path} is {}; allowed: a section [{path}]", show(value.get_ref())));
            return None;
        };
        let (source, error) = (self.source.clone(), self.error);
        let mut section = Self { path, at, table, asked: Vec::new(), source, error, base: None };
        if let Some((name, at)) = section.text(findings, "source") {
            // An unlisted source is one fault, not one for each constant that inherits it.
            section.source = findings.source(at, &section.path("source"), &name).or(Some(name));
        }
        if let Some((_, error)) = section.entry("error") {
            section.error = Some(error);
        }
        section.text(findings, "note");
        Some(section)
    }

    /// Returns a text that is not a constant, such as a title or a choice, with its offset.
    pub fn text(&mut self, findings: &mut Findings<'_>, key: &str) -> Option<(String, usize)> {
        let (at, value) = self.entry(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some((text.to_owned(), at)),
            None => {
                let (path, value) = (self.path(key), show(value.get_ref()));
                findings.fault(at, format!("{path} is {value}; allowed: a text in quotes"));
                None
            }
        }
    }

    /// Returns a required text.
    pub(crate) fn required_text(
        &mut self,
        findings: &mut Findings<'_>,
        key: &str,
        what: &str,
    ) -> Option<(String, usize)> {
        if !self.has(key) {
            self.missing(findings, key, what);
        }
        self.text(findings, key)
    }

    /// Returns the pairs of a section of texts, such as `[sources]`.
    pub fn words(&mut self, findings: &mut Findings<'_>, key: &str) -> Vec<(String, String)> {
        let Some((at, value)) = self.entry(key) else {
            self.missing(findings, key, &format!("a section [{key}]"));
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            findings.fault(at, format!("{key} is {}; allowed: a section [{key}]", show(value.get_ref())));
            return Vec::new();
        };
        let mut words = Vec::new();
        for (name, text) in table {
            let name = name.get_ref().to_string();
            match text.get_ref().as_str() {
                Some(text) if !text.trim().is_empty() => words.push((name, text.to_owned())),
                _ => {
                    let shown = show(text.get_ref());
                    findings.fault(
                        text.span().start,
                        format!("{key}.{name} is {shown}; allowed: a text that says where to look it up"),
                    );
                }
            }
        }
        words
    }

    /// Returns a constant with its offset, if it exists.
    pub(crate) fn constant_at<T>(
        &mut self,
        findings: &mut Findings<'_>,
        key: &str,
        precision: Precision,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, Reason>,
    ) -> Option<(T, usize)> {
        let (at, parts) = self.constant_parts(findings, key, precision)?;
        let (value, fault) = match read(parts.value.get_ref()) {
            Ok(value) => (Some((value, at)), None),
            Err(reason) => (None, Some(reason)),
        };
        self.note_constant(findings, key, at, &parts, precision, fault);
        value
    }

    /// Returns the offset of a constant, and its parts. Separate, because generic code is compiled for each constant.
    fn constant_parts(
        &mut self,
        findings: &mut Findings<'_>,
        key: &str,
        precision: Precision,
    ) -> Option<(usize, Parts<'t>)> {
        let (at, entry) = self.entry(key)?;
        let (source, error) = (self.source.clone(), self.error);
        let error = match precision {
            // A counted constant is exact even within a section of measured ones, unless it has an error of its own.
            Precision::Counted => None,
            Precision::Measured(_) => error,
        };
        let parts = Parts { value: entry, source, error, note: None };
        let Some(table) = entry.get_ref().as_table() else { return Some((at, parts)) };
        let path = self.path(key);
        let inner = Self { path, at, table, asked: Vec::new(), source: None, error: None, base: None };
        Some((at, inner.parts(findings, parts)?))
    }

    /// Records a constant, or the reason why it could not be read.
    fn note_constant(
        &mut self,
        findings: &mut Findings<'_>,
        key: &str,
        at: usize,
        parts: &Parts<'t>,
        precision: Precision,
        fault: Option<Reason>,
    ) {
        let path = self.path(key);
        if let Some(reason) = fault {
            findings.fault(at, format!("{path} is {}; {reason}", show(parts.value.get_ref())));
        }
        self.record(findings, path, at, parts, precision);
    }

    /// Returns a constant, if it exists.
    pub fn constant<T>(
        &mut self,
        findings: &mut Findings<'_>,
        key: &str,
        precision: Precision,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, Reason>,
    ) -> Option<T> {
        self.constant_at(findings, key, precision, read).map(|(value, _)| value)
    }

    /// Returns a required constant.
    pub fn required<T>(
        &mut self,
        findings: &mut Findings<'_>,
        key: &str,
        precision: Precision,
        what: &str,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, Reason>,
    ) -> Option<T> {
        if !self.has(key) {
            self.missing(findings, key, what);
        }
        self.constant(findings, key, precision, read)
    }

    /// Returns the parts of a constant written as a table.
    fn parts(mut self, findings: &mut Findings<'_>, outer: Parts<'t>) -> Option<Parts<'t>> {
        let value = self.entry("value").map(|(_, value)| value);
        if value.is_none() {
            self.missing(findings, "value", "{ value = .., error = .., source = .. }");
        }
        let own = self.text(findings, "source");
        let source = match own {
            Some((name, at)) => findings.source(at, &self.path("source"), &name).or(Some(name)),
            None => outer.source,
        };
        let error = self.entry("error").map(|(_, error)| error).or(outer.error);
        let note = self.text(findings, "note").map(|(note, _)| note);
        self.close(findings);
        Some(Parts { value: value?, source, error, note })
    }

    /// Records a constant, with a fault if its source or its error is missing.
    fn record(
        &self,
        findings: &mut Findings<'_>,
        path: String,
        at: usize,
        parts: &Parts<'t>,
        precision: Precision,
    ) {
        let Some(source) = parts.source.clone() else {
            let allowed = findings.allowed_sources();
            findings.fault(at, format!("{path} has no source; {allowed}"));
            return;
        };
        let (error, kinds) = match (parts.error.map(Spanned::get_ref), precision) {
            (Some(error), Precision::Measured(kinds)) => (plain(error), kinds),
            (Some(error), Precision::Counted) => (plain(error), [].as_slice()),
            (None, Precision::Counted) => ("exact".to_owned(), [].as_slice()),
            (None, Precision::Measured(_)) => {
                findings.fault(at, format!("{path} has no error; allowed: {BAND_ALLOWED}"));
                return;
            }
        };
        let band = match band(&error, kinds) {
            Ok(band) => band,
            Err(reason) => {
                findings.fault(at, format!("the error of {path} is {error:?}; {reason}"));
                return;
            }
        };
        let (value, note) = (plain(parts.value.get_ref()), parts.note.clone());
        let line = findings.line(at);
        let at = parts.value.span();
        findings.constants.push(Constant { path, value, error, band, source, note, line, at });
    }

    /// Records a fault for every key that was not requested.
    pub fn close(self, findings: &mut Findings<'_>) {
        for (name, _) in self.table {
            if !self.asked.iter().any(|asked| asked == name.get_ref()) {
                let path = self.path(name.get_ref());
                let mut allowed = self.asked.clone();
                allowed.sort();
                allowed.dedup();
                let allowed = allowed.join(", ");
                findings.fault(name.span().start, format!("{path} is not a known key; allowed: {allowed}"));
            }
        }
    }
}

/// The parts of a constant.
struct Parts<'t> {
    value: &'t Spanned<DeValue<'t>>,
    source: Option<String>,
    error: Option<&'t Spanned<DeValue<'t>>>,
    note: Option<String>,
}

/// Formats a value for a message: texts in quotes, long values truncated.
pub fn show(value: &DeValue<'_>) -> String {
    const LONG: usize = 60;
    let text = match value {
        DeValue::String(text) => format!("{text:?}"),
        other => plain(other),
    };
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Formats a value as written, texts without quotes.
fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| plain(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}
