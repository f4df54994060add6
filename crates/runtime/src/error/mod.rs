//! The error of a task: what went wrong, at which place, and which line started it.
//!
//! A task's body may fail with any error type; the error then travels as text, because the place that receives it may
//! be another process. A program can act on the [`ErrorKind`].

pub(crate) mod entered;
pub(crate) mod foreign;
pub(crate) mod panic;
mod text;

use crate::limits::{CAUSES_MAX, ERROR_BYTES_MAX, ERROR_TEXT_BYTES_MAX, ERROR_TEXT_BYTES_MIN};
use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedSet;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use text::BoundedText;

/// The site of everything that the runtime itself starts.
pub(crate) const RUNTIME_SITE: &str = "isles";

/// Deepest nesting of causes that is decoded: a peer must not decide how much stack decoding takes.
const NESTING_MAX: u32 = 16;

/// The result of an operation of Isles.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of an error, for programs that act on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The body of a task returned an error of its own.
    Failed,
    /// The body of a task panicked, or the `Serialize` or `Deserialize` of a value that was to travel; the text names
    /// the line of the program.
    Panicked,
    /// A place died and will never answer; stop using teams and finishes that need it.
    ///
    /// An operation that needs the place ends with this error. So does each finish that had a task at the place, a task
    /// from there, or a call in progress there when it died, once all its tasks at the other places have ended.
    DeadPlace(PlaceId),
    /// The enclosing finish was cancelled.
    Cancelled,
    /// The deadline of the enclosing finish passed.
    DeadlinePassed,
    /// The message to a place, or its answer, could not be read there.
    Undecodable,
    /// A message was longer than the machine can carry.
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// Largest allowed size, in bytes.
        max: usize,
    },
    /// An operation was called at the wrong place, or in the wrong state; the text says which.
    Misused,
    /// A channel is closed; the text names the operation.
    Closed,
    /// A writer of a shared object died or panicked: the value may be half written.
    Poisoned,
    /// Several errors of one finish; [`Error::causes`] lists them.
    Several,
    /// A `println!` of the task panicked because the reader of standard output is gone, as with `head`.
    ///
    /// Isles prints nothing about it. A program without another error exits quietly with code 141, as if killed by
    /// SIGPIPE.
    OutputClosed,
}

/// An error of a task, or several that one finish collected.
///
/// Any `std::error::Error` converts into it with `?`. It does not implement that trait itself, so that this conversion
/// can exist. With `?` it converts into boxed errors and, with the feature `anyhow`, into `anyhow::Error`;
/// [`Error::into_std`] wraps it in a `std::error::Error`.
pub struct Error(Box<Body>); // For `.context(..)` write: .map_err(isles::Error::into_std).context(..)

#[derive(Clone, Serialize, Deserialize)]
struct Body {
    kind: ErrorKind,
    text: String,
    /// Place at which the task ran.
    place: Option<PlaceId>,
    /// Location at which the program started it, as `file:line:column`.
    site: Option<String>,
    #[serde(deserialize_with = "causes")]
    causes: Vec<Body>,
    /// Number of further errors, which were only counted.
    uncounted: u64,
}

impl Error {
    /// Makes an error of `kind` that `text` describes.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        let body =
            Body { kind, text: text.into(), place: None, site: None, causes: Vec::new(), uncounted: 0 };
        Error(Box::new(body))
    }

    /// Makes an error of the program's own, as `anyhow::anyhow!` does.
    pub fn message(text: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Failed, text.to_string())
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the description of the error, without the kind and the place.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the place at which it went wrong, if that is known.
    pub fn place(&self) -> Option<PlaceId> {
        self.0.place
    }

    /// Returns the location at which the program started the task that failed, as `file:line:column`.
    pub fn site(&self) -> Option<&str> {
        self.0.site.as_deref()
    }

    /// Returns the errors that a finish collected; empty unless the kind is [`ErrorKind::Several`].
    pub fn causes(&self) -> Vec<Error> {
        self.0.causes.iter().map(|cause| Error(Box::new(cause.clone()))).collect()
    }

    /// Returns `true` if it is the death of one place and nothing else.
    pub(crate) fn is_death(&self) -> bool {
        matches!(self.0.kind, ErrorKind::DeadPlace(_))
    }

    /// Makes the error of a body that panicked with `payload`.
    pub fn panicked(payload: Box<dyn Any + Send>) -> Self {
        let is_closed_output = panic::is_closed_output(&*payload);
        let text = panic::describe(payload);
        Error::new(if is_closed_output { ErrorKind::OutputClosed } else { ErrorKind::Panicked }, text)
    }

    /// Appends `what` to the text.
    pub fn with(mut self, what: impl FnOnce() -> String) -> Self {
        self.0.text += &format!("; {}", what());
        self
    }

    /// Returns `true` if it only reports a cancellation.
    pub(crate) fn is_cancellation(&self) -> bool {
        self.0.is_cancellation()
    }

    /// Adds the place and the site, unless they are known already.
    pub(crate) fn at(mut self, place: PlaceId, site: Option<&str>) -> Self {
        let body = &mut *self.0;
        if body.place.is_none() && body.kind != ErrorKind::Several {
            body.place = Some(place);
        }
        // A failure at another place has no site if the line that started it is unknown there.
        if body.place == Some(place) && body.site.is_none() {
            // A line of the program, or nothing: a line of the runtime helps nobody.
            body.site = site.filter(|site| *site != RUNTIME_SITE).map(str::to_owned);
        }
        self
    }

    /// Adds the line of the program that called the failed operation, wherever no line is named yet.
    pub fn called_at(mut self, here: PlaceId, caller: &Location<'_>) -> Self {
        // A death belongs to no single line.
        if self.0.place.is_none() && self.0.kind != ErrorKind::Several && !self.is_death() {
            self.0.place = Some(here);
        }
        self.0.called_at(&caller.to_string());
        self
    }

    /// Collects the errors of a finish: a single one is returned as it is, several become a list; `None` if there are
    /// none.
    ///
    /// `uncounted` is the number of further errors.
    pub(crate) fn collect(errors: Vec<Error>, uncounted: u64) -> Option<Self> {
        let (mut errors, uncounted) = flattened(errors, uncounted);
        if errors.len() == 1 && uncounted == 0 {
            return errors.pop();
        }
        if errors.is_empty() && uncounted == 0 {
            return None;
        }
        Some(Error::several(errors, uncounted))
    }

    /// Merges this error and those of `other` into one list.
    pub(crate) fn merged_with(self, other: Error) -> Self {
        let mut several =
            if other.0.kind == ErrorKind::Several { other } else { Error::several(vec![other], 0) };
        several.0.causes.insert(0, *self.0);
        several
    }

    fn several(errors: Vec<Error>, uncounted: u64) -> Self {
        let mut several = Error::new(ErrorKind::Several, "");
        several.0.uncounted = uncounted;
        several.0.causes = errors.into_iter().map(|error| *error.0).collect();
        several
    }

    /// Returns the wire form, at most `len_max` bytes: texts are cut to fit; places and sites are kept.
    pub fn to_wire(&self, len_max: usize) -> Vec<u8> {
        let mut body = self.0.truncated(ERROR_TEXT_BYTES_MAX);
        loop {
            // An error consists of strings and numbers, which always encode.
            let bytes = postcard::to_allocvec(&body).unwrap_or_default();
            if bytes.len() <= len_max {
                return bytes;
            }
            body.shorten(bytes.len() - len_max);
        }
    }

    /// Returns the error as it would arrive from another place.
    pub(crate) fn travelled(self) -> Self {
        let is_short = self.0.causes.is_empty() && self.0.text.len() <= ERROR_TEXT_BYTES_MAX;
        if is_short { self } else { Error::from_wire(&self.to_wire(ERROR_BYTES_MAX)) }
    }

    /// Decodes the wire form.
    pub fn from_wire(bytes: &[u8]) -> Self {
        match postcard::from_bytes::<Body>(bytes) {
            Ok(body) => Error(Box::new(body)),
            Err(fault) => {
                Error::new(ErrorKind::Undecodable, format!("an error that could not be read: {fault}"))
            }
        }
    }
}

/// Decodes the causes of an error, which may have causes of their own.
fn causes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<Body>, D::Error> {
    thread_local! {
        static NESTING: Cell<u32> = const { Cell::new(0) };
    }
    let nesting = NESTING.get();
    if nesting == NESTING_MAX {
        return Err(serde::de::Error::custom("errors are nested too deeply"));
    }
    NESTING.set(nesting + 1);
    let causes = Vec::deserialize(deserializer);
    NESTING.set(nesting);
    causes
}

/// Replaces the lines of a library in the error of its tasks, which begin with `lines`, by the line of the program that
/// called the library.
pub fn of_library(mut error: Error, lines: &str, caller: &Location<'_>) -> Error {
    error.0.of_library(lines, &caller.to_string());
    error
}

/// Runs code of the program for a library.
///
/// # Errors
/// [`Panicked`](ErrorKind::Panicked): it panicked.
pub fn catch_panic<R>(code: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(code)).map_err(Error::panicked)
}

impl Body {
    /// Returns a copy whose texts have at most `len_max` bytes each.
    fn truncated(&self, len_max: usize) -> Body {
        Body {
            kind: self.kind.clone(),
            text: text::truncate_middle(&self.text, len_max),
            place: self.place,
            site: self.site.clone(),
            causes: self.causes.iter().map(|cause| cause.truncated(len_max)).collect(),
            uncounted: self.uncounted,
        }
    }

    fn called_at(&mut self, caller: &str) {
        // The death of a place names the finish that it struck.
        let is_named = self.site.is_some() || self.text.contains(caller);
        if self.kind != ErrorKind::Several && !is_named {
            self.site = Some(caller.to_owned());
        }
        self.causes.iter_mut().for_each(|cause| cause.called_at(caller));
    }

    fn of_library(&mut self, lines: &str, caller: &str) {
        let is_of_library = self.site.as_deref().is_none_or(|site| site.starts_with(lines));
        if is_of_library && !matches!(self.kind, ErrorKind::Several | ErrorKind::DeadPlace(_)) {
            self.site = Some(caller.to_owned());
        }
        self.causes.iter_mut().for_each(|cause| cause.of_library(lines, caller));
    }

    fn is_cancellation(&self) -> bool {
        match self.kind {
            ErrorKind::Cancelled => true,
            ErrorKind::Several => self.uncounted == 0 && self.causes.iter().all(Body::is_cancellation),
            _ => false,
        }
    }

    /// Removes up to `excess` bytes of the least important parts: long texts first, then causes, then the site.
    fn shorten(&mut self, excess: usize) {
        let text = self.longest_text();
        if text.len() > ERROR_TEXT_BYTES_MIN {
            // At most half, so that several long texts share the loss.
            let half = ERROR_TEXT_BYTES_MIN.max(text.len() / 2);
            *text = text::truncate_middle(text, half.max(text.len().saturating_sub(excess)));
        } else if self.causes.pop().is_some() {
            self.uncounted += 1;
        } else if let Some(site) = &mut self.site {
            site.truncate(text::boundary_before(site, site.len().saturating_sub(excess)));
        }
    }

    /// Returns the longest text of this error and all its causes.
    fn longest_text(&mut self) -> &mut String {
        let causes = self.causes.iter_mut().map(Body::longest_text);
        causes.fold(&mut self.text, |longest, text| if text.len() > longest.len() { text } else { longest })
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Error::of_chain(&error)
    }
}

impl Error {
    /// Makes the error of a body that failed with `error`, with its text and those of its causes.
    pub(crate) fn of_chain(error: &dyn std::error::Error) -> Self {
        let mut text = BoundedText::new(ERROR_TEXT_BYTES_MAX);
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        for (number, cause) in causes.by_ref().take(CAUSES_MAX).enumerate() {
            let colon = if number > 0 { ": " } else { "" };
            // A `Display` that fails has written as much as it could.
            let _ = write!(text, "{colon}{cause}");
        }
        if causes.next().is_some() {
            let _ = write!(text, ": and more than {CAUSES_MAX} causes");
        }
        Error::new(ErrorKind::Failed, text.into_string())
    }
}

impl Clone for Error {
    fn clone(&self) -> Self {
        Error(self.0.clone())
    }
}

impl Serialize for Error {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Body::deserialize(deserializer).map(|body| Error(Box::new(body)))
    }
}

/// Flattens the errors: the causes of a nested list without a place of its own take its place, and a death that one of
/// them already reports is not repeated.
fn flattened(errors: Vec<Error>, mut uncounted: u64) -> (Vec<Error>, u64) {
    let is_bare = |error: &Error| error.0.place.is_none() && error.0.site.is_none();
    let is_list = |error: &Error| error.0.kind == ErrorKind::Several && is_bare(error);
    let (lists, mut own): (Vec<Error>, Vec<Error>) = errors.into_iter().partition(is_list);
    let mut all = Vec::with_capacity(own.len());
    for list in lists {
        uncounted += list.0.uncounted;
        all.extend(list.0.causes.into_iter().map(|cause| Error(Box::new(cause))));
    }
    let is_duplicate = |error: &Error| {
        let is_death = matches!(error.0.kind, ErrorKind::DeadPlace(_));
        is_death && is_bare(error) && all.iter().any(|other| other.0.kind == error.0.kind)
    };
    own.retain(|error| !is_duplicate(error));
    all.extend(own);
    (all, uncounted)
}

/// Formats an error and its site, without the place.
struct BodyText<'a>(&'a Body);

impl fmt::Display for BodyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.0;
        match &body.kind {
            ErrorKind::Failed
            | ErrorKind::Undecodable
            | ErrorKind::Misused
            | ErrorKind::OutputClosed
            | ErrorKind::Poisoned
            | ErrorKind::Closed => write!(f, "{}", body.text)?,
            ErrorKind::Panicked => write!(f, "panicked {}", body.text)?,
            ErrorKind::DeadPlace(place) => write!(f, "DeadPlace: {place} is dead; {}", body.text)?,
            ErrorKind::Cancelled => write!(f, "cancelled: {}", body.text)?,
            ErrorKind::DeadlinePassed => write!(f, "the deadline passed: {}", body.text)?,
            ErrorKind::TooLong { len, max } => write!(f, "a message of {len} bytes; allowed: at most {max}")?,
            ErrorKind::Several => {
                write!(f, "{} errors", body.causes.len() as u64 + body.uncounted)?;
                group_similar(&body.causes).into_iter().try_for_each(|similar| write_similar(f, &similar))?;
                if body.uncounted > 0 {
                    write!(f, "\n  and {} more", body.uncounted)?;
                }
            }
        }
        match &body.site {
            Some(site) => write!(f, " (started at {site})"),
            None => Ok(()),
        }
    }
}

/// Groups causes that differ only in their places, in the order of the first of each group.
fn group_similar(causes: &[Body]) -> Vec<Vec<&Body>> {
    let mut group_of = HashMap::new();
    let mut groups: Vec<Vec<&Body>> = Vec::new();
    for cause in causes {
        let group = *group_of.entry(BodyText(cause).to_string()).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(cause);
    }
    groups
}

/// Writes one line for errors that differ only in their places.
fn write_similar(f: &mut fmt::Formatter<'_>, similar: &[&Body]) -> fmt::Result {
    let places: OrderedSet<u32> =
        similar.iter().filter_map(|cause| cause.place).map(|place| place.0).collect();
    let times = match similar.len() {
        number if number <= places.len().max(1) => String::new(),
        2 => "twice".to_owned(),
        number => format!("{number} times"),
    };
    let at = if places.is_empty() { String::new() } else { format!("at {}", named(&places)) };
    let words = [times, at].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ");
    let colon = if words.is_empty() { "" } else { ": " };
    write!(f, "\n  {words}{colon}{}", BodyText(similar[0]))
}

/// Names places: `place 3`, `62 places (0, 2, 4-63)`.
pub(crate) fn named(places: &OrderedSet<u32>) -> String {
    match (places.len(), places.first()) {
        (1, Some(place)) => PlaceId(place).to_string(),
        (number, _) => format!("{number} places ({})", ranges(places)),
    }
}

/// Largest number of ranges of places that are listed.
const RANGES_MAX: usize = 64;

/// Formats numbers as ranges: `0, 2, 4-63`.
fn ranges(numbers: &OrderedSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): (u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    let more = if ranges.len() > RANGES_MAX { ", .." } else { "" };
    ranges.into_iter().take(RANGES_MAX).map(text).collect::<Vec<_>>().join(", ") + more
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "at {place}: ")?;
        }
        BodyText(self).fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests;
