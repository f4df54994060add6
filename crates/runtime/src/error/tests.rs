//! Errors: their display, collection, truncation to a message, and decoding.

use super::*;

#[test]
fn one_collected_error_is_itself() {
    let error = Error::collect(vec![Error::message("lost the map")], 0).unwrap();
    assert_eq!(error.kind(), &ErrorKind::Failed);
    assert!(Error::collect(Vec::new(), 0).is_none());
}

#[test]
fn equal_errors_are_told_once_with_all_their_places() {
    let at = |place, text| Error::message(text).at(PlaceId(place), Some("a.rs:1:2"));
    let many = [4, 0, 2, 5, 6].map(|place| at(place, "lost the map"));
    let alone = [at(3, "found it"), Error::message("nowhere"), Error::message("nowhere")];
    let again = [at(9, "tired"), at(9, "tired"), at(8, "tired")];
    let errors = many.into_iter().chain(alone).chain(again).chain([Error::dead(PlaceId(1))]).collect();
    assert_eq!(
        Error::collect(errors, 0).unwrap().to_string(),
        "12 errors\n  at 5 places (0, 2, 4-6): lost the map (started at a.rs:1:2)\n  \
         at place 3: found it (started at a.rs:1:2)\n  twice: nowhere\n  \
         3 times at 2 places (8, 9): tired (started at a.rs:1:2)\n  \
         DeadPlace: place 1 is dead; it will never answer again"
    );
    let same = (0..3).map(|_| at(7, "tired")).collect();
    let said = "3 errors\n  3 times at place 7: tired (started at a.rs:1:2)";
    assert_eq!(Error::collect(same, 0).unwrap().to_string(), said);
}

#[test]
fn several_errors_name_their_places() {
    let first = Error::message("one").at(PlaceId(1), Some("a.rs:1:2"));
    let second = Error::dead(PlaceId(2));
    let text = Error::collect(vec![first, second], 3).unwrap().to_string();
    assert_eq!(
        text,
        "5 errors\n  at place 1: one (started at a.rs:1:2)\n  \
         DeadPlace: place 2 is dead; it will never answer again\n  and 3 more"
    );
}

#[test]
fn errors_of_a_finish_within_another_are_told_once() {
    let first = Error::message("worker broke").at(PlaceId(1), Some("a.rs:1:2"));
    let met = Error::dead(PlaceId(2)).at(PlaceId(2), Some("a.rs:3:4"));
    let inner = Error::collect(vec![first, met], 1).unwrap();
    let outer = Error::collect(vec![inner, Error::dead(PlaceId(2)), Error::dead(PlaceId(3))], 2).unwrap();
    assert_eq!(
        outer.to_string(),
        "6 errors\n  at place 1: worker broke (started at a.rs:1:2)\n  at place 2: DeadPlace: place 2 is dead; it \
         will never answer again (started at a.rs:3:4)\n  DeadPlace: place 3 is dead; it will never answer \
         again\n  and 3 more"
    );
}

/// Returns the error that arrives, and the length of its wire form.
fn sent(error: &Error) -> (Error, usize) {
    let wire = error.to_wire(ERROR_BYTES_MAX);
    (Error::from_wire(&wire), wire.len())
}

#[test]
fn a_long_error_keeps_where_it_happened_and_what_fits_of_its_text() {
    for pad in ["", "x", "xy"] {
        let text = format!("{pad}{}", "€".repeat(4000));
        let error = Error::message(&text).at(PlaceId(3), Some("src/far.rs:12:5"));
        let (back, len) = sent(&error);
        assert_eq!((back.kind(), back.place()), (&ErrorKind::Failed, Some(PlaceId(3))));
        assert_eq!(back.site(), Some("src/far.rs:12:5"));
        assert!(back.text().contains(" bytes left out … €") && back.text().ends_with('€'), "{back}");
        assert!((ERROR_TEXT_BYTES_MAX..=ERROR_BYTES_MAX).contains(&len), "{len} bytes");
        assert_eq!(back.to_string(), error.travelled().to_string());
    }
}

/// An error with a chain of this many causes, the last of which is the root; or one that is its own cause.
#[derive(Debug)]
struct Chained(usize, Option<Box<Chained>>);

const ENDLESS: usize = usize::MAX;

impl fmt::Display for Chained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cause {}", self.0)
    }
}

impl std::error::Error for Chained {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cause = self.1.as_deref().or((self.0 == ENDLESS).then_some(self));
        cause.map(|cause| cause as _)
    }
}

#[test]
fn of_a_long_chain_the_first_and_the_innermost_causes_are_kept() {
    let chain = (1..20_000).fold(Chained(0, None), |cause, number| Chained(number, Some(Box::new(cause))));
    let error = Error::of_chain(&chain);
    assert!(error.text().starts_with("cause 19999: cause 19998: "), "{error}");
    assert!(error.text().ends_with(": cause 1: cause 0") && error.text().contains(" left out "), "{error}");
    assert!(error.text().len() <= ERROR_TEXT_BYTES_MAX);
    assert_eq!(sent(&error).0.to_string(), error.to_string());
    // Dropping the chain would take a stack as deep as it is long.
    std::mem::forget(chain);
}

#[test]
fn a_chain_without_an_end_is_left() {
    let text = Error::from(Chained(ENDLESS, None)).text().to_owned();
    assert!(text.ends_with(&format!(": and more than {CAUSES_MAX} causes")), "{text}");
}

#[test]
fn many_long_errors_are_shortened_before_they_are_left_out() {
    let cause = |place| Error::message("é".repeat(300)).at(PlaceId(place), Some("src/far.rs:12:5"));
    let (back, len) = sent(&Error::collect((0..4).map(cause).collect(), 2).unwrap());
    assert!(len <= ERROR_BYTES_MAX);
    assert_eq!((back.causes().len(), back.0.uncounted), (4, 2));
    let lens = back.0.causes.iter().map(|cause| cause.text.len());
    assert!(lens.clone().min().unwrap() >= 150, "{:?}", lens.collect::<Vec<_>>());
    let (back, _) = sent(&Error::collect((0..200).map(cause).collect(), 2).unwrap());
    assert!(back.causes().len() >= 5, "{back}");
    assert_eq!(back.causes().len() as u64 + back.0.uncounted, 202);
}

#[test]
fn even_an_endless_site_fits_the_wire() {
    let (back, len) = sent(&Error::message("short").at(PlaceId(3), Some(&"é".repeat(4000))));
    assert!(len <= ERROR_BYTES_MAX);
    assert_eq!((back.place(), back.0.text.as_str()), (Some(PlaceId(3)), "short"));
}

#[test]
fn errors_that_are_nested_without_end_are_refused() {
    // Each level: kind, no text, no place, no site, one cause.
    let endless = [0, 0, 0, 0, 1].repeat(100_000);
    assert_eq!(Error::from_wire(&endless).kind(), &ErrorKind::Undecodable);
    let causes = (0..NESTING_MAX - 2).fold(Error::message("deep"), |cause, _| Error::several(vec![cause], 0));
    assert_eq!(Error::from_wire(&causes.to_wire(1000)).to_string(), causes.to_string());
}

#[test]
fn garbage_is_an_undecodable_error() {
    assert_eq!(Error::from_wire(&[0xff; 9]).kind(), &ErrorKind::Undecodable);
}
