//! Errors of other libraries, converted into [`Error`] and back.
//!
//! The rules of coherence decide its shape. [`Error`] takes every `std::error::Error` with `?`, so it cannot be one
//! itself; and types that are none either (`anyhow::Error`, a box, a text) cannot convert into it. So the bodies of
//! tasks end with a [`BodyError`], which takes both, and [`StdError`] wraps an error that leaves. Invariant: an
//! [`Error`] that goes out and comes back is the same, with its kind and its places.

use crate::error::Error;
use std::error::Error as Std;
use std::fmt;

/// An [`Error`] as a `std::error::Error`, which `Error` itself is not; see [`Error::into_std`].
#[derive(Clone)]
pub struct StdError(Error);

impl StdError {
    /// Returns the wrapped error.
    pub fn into_inner(self) -> Error {
        self.0
    }
}

impl fmt::Display for StdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for StdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Std for StdError {}

impl Error {
    /// Wraps the error in a type that implements `std::error::Error`, for libraries that need one:
    /// `result.map_err(isles::Error::into_std).context("..")`.
    pub fn into_std(self) -> StdError {
        StdError(self)
    }

    /// Converts an error of any library: a box, `anyhow::Error`, a text. Keeps the texts of all its causes; a wrapped
    /// [`Error`] is returned as it was.
    ///
    /// For functions that return [`crate::Result`]: `result.map_err(isles::Error::from_boxed)?`. A body takes such
    /// errors directly; so do `finish` and `spawn`, except for a `Box<dyn Error + Send + Sync>`.
    pub fn from_boxed(error: impl Into<Box<dyn Std + Send + Sync>>) -> Error {
        let error: Box<dyn Std> = error.into();
        BodyError::of(error).0
    }
}

impl From<Error> for Box<dyn Std> {
    fn from(error: Error) -> Self {
        Box::new(StdError(error))
    }
}

impl From<Error> for Box<dyn Std + Send> {
    fn from(error: Error) -> Self {
        Box::new(StdError(error))
    }
}

impl From<Error> for Box<dyn Std + Send + Sync> {
    fn from(error: Error) -> Self {
        Box::new(StdError(error))
    }
}

#[cfg(feature = "anyhow")]
impl From<Error> for anyhow::Error {
    fn from(error: Error) -> Self {
        anyhow::Error::new(StdError(error))
    }
}

/// The error type of a task's body: `?` converts into it any error that can be boxed, and [`Error`].
///
/// Programs do not name it; it exists because [`Error`] cannot have both this conversion and those out of it.
#[doc(hidden)]
pub struct BodyError(Error);

impl BodyError {
    fn of(error: Box<dyn Std>) -> BodyError {
        match error.downcast::<StdError>() {
            Ok(own) => BodyError(own.0),
            Err(error) => BodyError(Error::of_chain(&*error)),
        }
    }
}

impl<E: Into<Box<dyn Std>>> From<E> for BodyError {
    fn from(error: E) -> Self {
        BodyError::of(error.into())
    }
}

/// An error that `?` in a body takes, each kind by its own `Way`, which the compiler infers.
///
/// A box with `Send` is no `std::error::Error` and does not convert into one without, but the standard library might
/// add that: two conversions into [`BodyError`] could overlap some day. Two ways never do.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`?` in a body cannot take a `{Self}`",
    label = "this result has an error of type `{Self}`",
    note = "it takes any `std::error::Error`, `anyhow::Error`, boxed errors and `String`; otherwise write `.map_err(isles::Error::message)?` for what has a text"
)]
pub trait IntoBodyError<Way> {
    /// Converts the error into that of a body.
    fn into_body_error(self) -> BodyError;
}

/// The way of errors that convert into a box.
#[doc(hidden)]
pub enum ByConversion {}

/// The way of boxes with `Send` and `Sync`.
#[doc(hidden)]
pub enum OfSharedBox {}

/// The way of boxes with `Send`.
#[doc(hidden)]
pub enum OfSentBox {}

impl<E: Into<Box<dyn Std>>> IntoBodyError<ByConversion> for E {
    fn into_body_error(self) -> BodyError {
        BodyError::from(self)
    }
}

impl IntoBodyError<OfSharedBox> for Box<dyn Std + Send + Sync> {
    fn into_body_error(self) -> BodyError {
        BodyError::of(self)
    }
}

impl IntoBodyError<OfSentBox> for Box<dyn Std + Send> {
    fn into_body_error(self) -> BodyError {
        BodyError::of(self)
    }
}

/// Converts the error of a result before a `?` of a body.
#[doc(hidden)]
#[inline]
pub fn body_result<V, E: IntoBodyError<Way>, Way>(result: Result<V, E>) -> Result<V, BodyError> {
    result.map_err(E::into_body_error)
}

/// Converts the error in an `Err(..)` at the end of a body.
#[doc(hidden)]
pub fn body_error<E: IntoBodyError<Way>, Way>(error: E) -> BodyError {
    error.into_body_error()
}

impl From<BodyError> for Error {
    fn from(error: BodyError) -> Self {
        error.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use isles_protocol::PlaceId;

    fn boxed() -> Box<dyn Std> {
        Error::new(ErrorKind::Misused, "too late").at(PlaceId(3), Some("a.rs:1:2")).into()
    }

    #[test]
    fn an_error_that_went_out_comes_back_as_it_was() {
        let back = Error::from(BodyError::from(boxed()));
        assert_eq!(
            (back.kind(), back.place(), back.site()),
            (&ErrorKind::Misused, Some(PlaceId(3)), Some("a.rs:1:2"))
        );
        let sent: Box<dyn Std + Send + Sync> = back.clone().into();
        assert_eq!(Error::from_boxed(sent).to_string(), back.to_string());
        assert_eq!(back.into_std().into_inner().kind(), &ErrorKind::Misused);
    }

    #[test]
    fn errors_that_are_no_std_errors_keep_their_causes() {
        let parsed = "x".parse::<u8>().unwrap_err();
        let outer = std::io::Error::other(parsed);
        let text = outer.to_string();
        assert_eq!(Error::from_boxed(outer).to_string(), text);
        assert_eq!(Error::from(BodyError::from("a text")).to_string(), "a text");
        let body = || -> Result<(), BodyError> { Ok(Err(String::from("late"))?) };
        assert_eq!(Error::from(body().unwrap_err()).kind(), &ErrorKind::Failed);
    }
}
