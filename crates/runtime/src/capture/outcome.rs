//! Values that the body of a task may end with.
//!
//! A task returns no value; it ends in success or with an error that the enclosing finish collects. This trait says
//! which types are read as such, and refuses the others, because a forgotten value is nearly always a mistake.

use crate::{BodyError, Error};
use std::any::Any;
use std::fmt::Debug;

/// Types that the body of a task may have.
#[diagnostic::on_unimplemented(
    message = "a task cannot end with a `{Self}`",
    label = "this `{Self}` would be lost",
    note = "end the body with `;` if nobody needs the value, or use `at!` to get it back",
    note = "a body may be `()` or a `Result` whose error converts into `isles::Error` or a `Box<dyn std::error::Error>`"
)]
pub trait TaskOutcome {
    /// Returns the outcome of the task for its finish.
    ///
    /// # Errors
    /// The body's own error.
    fn into_result(self) -> Result<(), Error>;
}

impl TaskOutcome for () {
    fn into_result(self) -> Result<(), Error> {
        Ok(())
    }
}

impl<T, E: Into<BodyError>> TaskOutcome for Result<T, E> {
    fn into_result(self) -> Result<(), Error> {
        self.map(drop).map_err(|error| error.into().into())
    }
}

/// Types that `main` and tests may have: as for any `main`, an error needs `Debug` only.
#[diagnostic::on_unimplemented(
    message = "`main` and tests cannot end with a `{Self}`",
    label = "this `{Self}` would be lost",
    note = "they end with `()` or a `Result` whose error implements `Debug`"
)]
pub trait MainOutcome {
    /// Returns the outcome of the program for its run.
    ///
    /// # Errors
    /// The program's own error; if it is no [`Error`], its `Debug` output is the text.
    fn into_main_result(self) -> Result<(), Error>;
}

impl MainOutcome for () {
    fn into_main_result(self) -> Result<(), Error> {
        Ok(())
    }
}

impl<T, E: Debug + 'static> MainOutcome for Result<T, E> {
    fn into_main_result(self) -> Result<(), Error> {
        let Err(error) = self else { return Ok(()) };
        let mut error = Some(error);
        let own = (&mut error as &mut dyn Any).downcast_mut::<Option<Error>>().and_then(Option::take);
        Err(own
            .unwrap_or_else(|| Error::message(error.map(|error| format!("{error:?}")).unwrap_or_default())))
    }
}

/// Gives the type `!` a name on stable Rust.
#[doc(hidden)]
pub trait Returns {
    /// Return type of the function.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

/// A body that never ends, or panics.
#[diagnostic::do_not_recommend]
impl TaskOutcome for <fn() -> ! as Returns>::Output {
    fn into_result(self) -> Result<(), Error> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl MainOutcome for <fn() -> ! as Returns>::Output {
    fn into_main_result(self) -> Result<(), Error> {
        self
    }
}
