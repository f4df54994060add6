//! What the body of a task may end with.
//!
//! A task gives nothing back; its end is success or an error that the enclosing finish collects. This trait says which
//! types are read as such, and refuses the others, because a forgotten value is nearly always a mistake.

use crate::Error;

/// Types that the body of a task, of `main` and of a test may have.
#[diagnostic::on_unimplemented(
    message = "a task cannot end with a `{Self}`",
    label = "this `{Self}` would be lost",
    note = "end the body with `;` if nobody needs the value, or use `at!` to get it back",
    note = "a body may be `()` or a `Result` whose error converts into `isles::Error`"
)]
pub trait TaskOutcome {
    /// The end of the task as its finish sees it.
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

impl<T, E: Into<Error>> TaskOutcome for Result<T, E> {
    fn into_result(self) -> Result<(), Error> {
        self.map(drop).map_err(Into::into)
    }
}

/// Gives the type `!` a name on stable Rust.
#[doc(hidden)]
pub trait Returns {
    /// What the function returns.
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
