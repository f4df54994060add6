//! The effect of serde's attributes on values that travel: they arrive unchanged, or are refused with a clear error.
//!
//! The outcome is the same at each place, with one place and with several: as a capture of `at!` and of `spawn_at!`, as
//! a result, as a replica, and as the seed of a `PlaceLocal`.

use isles::prelude::*;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Outcome of sending a value to a place.
type Outcome = Result<(), String>;

fn compared<T: PartialEq + Debug>(sent: &T, arrived: isles::Result<T>) -> Outcome {
    match arrived {
        Ok(arrived) if arrived == *sent => Ok(()),
        Ok(arrived) => Err(format!("corrupted: {sent:?} arrived as {arrived:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Asserts that `outcome` is a refusal with `words` in it, or a success if there are none.
#[track_caller]
fn assert_outcome(way: &str, outcome: Outcome, words: Option<&str>) {
    match (outcome, words) {
        (Ok(()), None) => {}
        (Err(text), Some(words)) => {
            let plain = text.contains(words) && !text.contains("PostCard") && !text.contains("corrupted");
            assert!(plain, "{way}: {text:?} should say {words:?}");
        }
        (outcome, words) => panic!("{way}: {outcome:?} instead of {words:?}"),
    }
}

/// Sends `$value` in each way to each place. It must be refused with `$words`, or arrive if these are `None`.
macro_rules! sent {
    ($value:expr, $words:expr) => {{
        let (value, words) = ($value, $words);
        let words: Option<&str> = words;
        // Without debug assertions there is no trial, and for the own place nothing is encoded.
        let says = |place: Place| if cfg!(debug_assertions) || place != here() { words } else { None };
        for place in places() {
            // Only the first values of a call site get a trial: so each way has a site of its own for each value.
            let taken = at!(place, [one = &value] { let _ = one; }).await;
            assert_outcome("capture", taken.map_err(|error| error.to_string()), says(place));
            if words.is_none() {
                let echo = at!(place, [one = value.clone()] one).await;
                assert_outcome("both ways", compared(&value, echo), None);
            }
            let task = finish(async { spawn_at!(place, [one = &value] { let _ = one; }) }).await;
            assert_outcome("task", task.map_err(|error| error.to_string()), words);
        }
        let copied = Replicated::new(value.clone()).await;
        let spread = |one: Option<String>| match words {
            _ if places().count() == 1 && !cfg!(debug_assertions) => None,
            _ => Some(one).flatten(),
        };
        let words = spread(words.map(str::to_owned));
        assert_outcome("replica", copied.map(drop).map_err(|error| error.to_string()), words.as_deref());
        let seeded = PlaceLocal::with(value, |seed| seed).await;
        assert_outcome("seed", seeded.map(drop).map_err(|error| error.to_string()), words.as_deref());
    }};
}

/// As [`sent`], for a value that must arrive.
macro_rules! arrives {
    ($value:expr) => {
        sent!($value, None)
    };
}

/// As [`sent`], for a value that must be refused.
macro_rules! refused {
    ($value:expr, $words:expr) => {
        sent!($value, Some($words))
    };
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Cached {
    First,
    #[serde(skip)]
    #[allow(dead_code)]
    Cache(u8),
    Third,
    Fourth(u8),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Written {
    #[serde(skip_deserializing)]
    First,
    Second,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shaped {
    Point {
        x: u8,
        y: u8,
    },
    Pair(u8, #[serde(skip_deserializing)] u8, u8),
    Named {
        #[serde(skip_serializing, default)]
        first: u8,
        second: u8,
    },
}

#[isles::test(places = 2)]
async fn a_skipped_variant_is_refused_and_not_taken_for_its_neighbour() -> isles::Result<()> {
    arrives!(Cached::First);
    refused!(Cached::Third, "`#[serde(skip)]` on a variant");
    refused!(Cached::Fourth(4), "`#[serde(skip)]` on a variant");
    refused!(Written::First, "`#[serde(skip)]` on a variant");
    refused!(Written::Second, "`#[serde(skip)]` on a variant");
    arrives!(Shaped::Point { x: 1, y: 2 });
    refused!(Shaped::Pair(1, 2, 3), "skip_deserializing");
    refused!(Shaped::Named { first: 1, second: 2 }, "skip_serializing");
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unread {
    a: u32,
    #[serde(skip_deserializing)]
    b: u32,
    c: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unwritten {
    a: u32,
    #[serde(skip_serializing, default)]
    b: u32,
    c: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Crossed {
    #[serde(skip_serializing, default)]
    a: u32,
    #[serde(skip_deserializing)]
    b: u32,
    c: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair(u32, #[serde(skip_deserializing)] u32, u32);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Optional {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    a: Option<u32>,
    b: u32,
}

#[isles::test(places = 2)]
async fn fields_that_one_direction_skips_are_refused() -> isles::Result<()> {
    refused!(Unread { a: 1, b: 2, c: 3 }, "skip_deserializing");
    refused!((Unread { a: 1, b: 2, c: 3 }, String::from("\u{1}ab")), "skip_deserializing");
    refused!(vec![Unread { a: 1, b: 2, c: 3 }; 3], "skip_deserializing");
    refused!(Unwritten { a: 1, b: 2, c: 3 }, "skip_serializing");
    refused!(Pair(1, 2, 3), "skip_deserializing");
    arrives!(Optional { a: Some(1), b: 2 });
    refused!(Optional { a: None, b: 2 }, "skip_serializing_if");
    if cfg!(debug_assertions) {
        // The numbers of written and read fields are equal, but the fields differ: only a trial detects it.
        refused!(Crossed { a: 1, b: 2, c: 3 }, "reads back as a different one");
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    a: u8,
    #[serde(flatten)]
    inner: Inner,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Inner {
    b: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u32),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Unit,
    Fields { a: u8 },
    Inner(Inner),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    Unit,
    One(u8),
    Fields { a: u8 },
}

#[isles::test(places = 2)]
async fn forms_that_ask_the_bytes_what_they_are_are_refused() -> isles::Result<()> {
    refused!(Flat { a: 1, inner: Inner { b: 2 } }, "`#[serde(flatten)]`");
    refused!(Untagged::Number(7), "`#[serde(untagged)]`");
    refused!(Untagged::Text("seven".into()), "`#[serde(untagged)]`");
    refused!(Tagged::Unit, "`#[serde(tag = ...)]`");
    refused!(Tagged::Fields { a: 1 }, "`#[serde(tag = ...)]`");
    refused!(Tagged::Inner(Inner { b: 1 }), "`#[serde(tag = ...)]`");
    refused!(Adjacent::Unit, "`#[serde(tag = ...)]`");
    refused!(Adjacent::One(1), "`#[serde(tag = ...)]`");
    refused!(Adjacent::Fields { a: 1 }, "`#[serde(tag = ...)]`");
    Ok(())
}

/// Writes one number more than it reads.
mod growing {
    use super::*;

    pub fn serialize<S: Serializer>(value: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        (value + 1).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        u32::deserialize(deserializer)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Growing(#[serde(with = "growing")] u32);

#[derive(Clone, Debug, PartialEq)]
struct Mute;

impl Serialize for Mute {
    fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("I will not be written"))
    }
}

impl<'de> Deserialize<'de> for Mute {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Ok(Mute)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Deaf(u8);

impl<'de> Deserialize<'de> for Deaf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(deserializer)?;
        Err(D::Error::custom(format_args!("I will not be read as {number}")))
    }
}

/// Announces three numbers, and writes two.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Boasting(Vec<u8>);

impl Serialize for Boasting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(3))?;
        list.serialize_element(&1)?;
        list.serialize_element(&2)?;
        list.end()
    }
}

/// Does not announce how many numbers it writes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Endless(Vec<u8>);

impl Serialize for Endless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter(|number| **number > 0))
    }
}

#[isles::test(places = 2)]
async fn serde_code_of_the_program_is_refused_in_its_own_words() -> isles::Result<()> {
    refused!(Mute, "I will not be written");
    refused!((1_u8, Some(Mute)), "I will not be written");
    refused!(Deaf(7), "I will not be read as 7");
    refused!(Boasting(vec![1, 2]), "announces a different number of elements");
    refused!(Endless(vec![1, 2]), "without its length");
    if cfg!(debug_assertions) {
        refused!(Growing(1), "`#[serde(with = ...)]`");
    }
    Ok(())
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Renamed {
    #[serde(rename = "other")]
    first_field: u8,
    #[serde(alias = "segundo", alias = "deuxieme")]
    second_field: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Aliased {
    #[serde(alias = "Premier", alias = "Primero")]
    First,
    #[serde(rename = "2nd")]
    Second(Vec<f64>),
    Third,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Transparent {
    numbers: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<f64>", into = "Vec<f64>")]
struct Converted(f64);

impl From<Vec<f64>> for Converted {
    fn from(numbers: Vec<f64>) -> Self {
        Converted(numbers[0])
    }
}

impl From<Converted> for Vec<f64> {
    fn from(number: Converted) -> Self {
        vec![number.0]
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Newtype(Vec<i16>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Generic<T> {
    before: u8,
    list: T,
    after: Option<T>,
}

#[isles::test(places = 2)]
async fn what_suits_the_format_arrives() -> isles::Result<()> {
    arrives!(Renamed { first_field: 1, second_field: vec![2] });
    arrives!(Aliased::First);
    arrives!(Aliased::Second(vec![2.5; 3]));
    arrives!(Aliased::Third);
    arrives!(Transparent { numbers: vec![1, 1 << 40] });
    arrives!(Converted(1.5));
    arrives!(Newtype(vec![-1, 1]));
    arrives!(Generic { before: 1, list: vec![1.5_f64; 700], after: Some(vec![]) });
    arrives!(Generic { before: 1, list: Box::new(vec![1_u16, 2]), after: None });
    arrives!((0..50).map(|number| (number, number.to_string())).collect::<HashMap<u32, String>>());
    arrives!((0..50).collect::<HashSet<i64>>());
    arrives!((vec![1_u8], Ok::<Vec<f32>, String>(vec![1.0]), [Some(vec![1_u128 << 100])]));
    arrives!((i128::MIN, u128::MAX, i64::MIN, i8::MIN, 'ß', "text".to_owned(), -0.0_f32));
    Ok(())
}

#[isles::test(places = 1)]
async fn one_place_refuses_what_two_refuse() -> isles::Result<()> {
    refused!(Cached::Third, "`#[serde(skip)]` on a variant");
    refused!(Unread { a: 1, b: 2, c: 3 }, "skip_deserializing");
    refused!(Untagged::Number(7), "`#[serde(untagged)]`");
    refused!(Mute, "I will not be written");
    if cfg!(debug_assertions) {
        let answer = at!(here(), Unread { a: 1, b: 2, c: 3 }).await;
        assert_outcome(
            "answer",
            answer.map(drop).map_err(|error| error.to_string()),
            Some("skip_deserializing"),
        );
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn an_answer_is_refused_wherever_the_body_runs() -> isles::Result<()> {
    for place in places() {
        if !cfg!(debug_assertions) && place == here() {
            continue;
        }
        let answer = at!(place, (Unread { a: 1, b: 2, c: 3 }, 9_u8)).await;
        assert_outcome(
            "answer",
            answer.map(drop).map_err(|error| error.to_string()),
            Some("skip_deserializing"),
        );
        let answer = at!(place, Untagged::Number(1)).await;
        assert_outcome(
            "answer",
            answer.map(drop).map_err(|error| error.to_string()),
            Some("`#[serde(untagged)]`"),
        );
    }
    Ok(())
}

/// A counter behind a shared reference.
#[derive(Serialize, Deserialize)]
struct Counts {
    name: String,
    hits: Vec<AtomicU64>,
}

#[isles::test(places = 2)]
async fn counters_inside_of_structures_are_refused_at_each_place_when_they_are_tried_out() {
    let counts = Counts { name: "hits".to_owned(), hits: vec![AtomicU64::new(0)] };
    for place in places() {
        let name = at!(place, counts.name.len()).await;
        assert_eq!(name.unwrap(), 4, "a field without a counter travels");
        let hit = at!(place, [counts = &counts] counts.hits[0].fetch_add(1, Ordering::Relaxed)).await;
        assert_eq!(
            hit.is_err(),
            cfg!(debug_assertions),
            "at {place}: shipments are tried out in debug builds"
        );
        let Err(error) = hit else { continue };
        let text = error.to_string();
        assert!(text.contains("AtomicU64") || text.contains("Atomic<u64>"), "{text}");
    }
}

/// A chain of nested `T`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Chain(Option<Box<Chain>>);

fn chain(links: u32) -> Chain {
    (0..links).fold(Chain(None), |chain, _| Chain(Some(Box::new(chain))))
}

/// Drops a chain link by link: its own drop would recurse as deep as the chain is long.
fn take_apart(mut chain: Chain) {
    while let Some(next) = chain.0.take() {
        chain = *next;
    }
}

#[isles::test(places = 2)]
async fn a_value_that_is_too_deep_is_an_error() -> isles::Result<()> {
    fn is_too_deep<T>(result: isles::Result<T>) -> bool {
        result.is_err_and(|error| error.to_string().contains("are nested more than"))
    }
    let (short, long) = (chain(240), chain(100_000));
    assert!(at!(here().next(), [chain = &short] chain.0.is_some()).await?);
    assert!(is_too_deep(at!(here().next(), [chain = &long] chain.0.is_some()).await));
    take_apart(long);
    Ok(())
}

/// Sends a value with the bounds of generic code.
async fn through<T: DeserializeOwned + Serialize + Clone + PartialEq + Debug>(value: T) -> isles::Result<()> {
    for place in places() {
        assert_eq!(at!(place, [one = &value] one.clone()).await?, value);
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn vectors_of_numbers_arrive_through_generic_functions() -> isles::Result<()> {
    through(vec![1.5_f64; 1024]).await?;
    through(vec![u8::MAX; 9000]).await?;
    through(Some(vec![7_i32; 3])).await?;
    through((vec![u64::MAX], vec![vec![1_u16], vec![]], Err::<String, Vec<i8>>(vec![-1]))).await?;
    through(vec![String::from("text")]).await
}
