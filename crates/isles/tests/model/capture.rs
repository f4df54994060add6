//! Bodies in every common form: each returns the same value here and at another place.
//!
//! The loop over all places runs each body in both ways, directly and from bytes. Programs that must not compile are in
//! `ui/`.

use isles::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Asserts that the value of `$body` is `$expected` at every place.
macro_rules! everywhere {
    ($place:ident, $call:expr, $expected:expr) => {
        for $place in places() {
            assert_eq!($call.await?, $expected, "at {}", $place);
        }
    };
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Graph {
    offsets: Vec<u32>,
    weights: Vec<f64>,
    name: String,
}

fn graph() -> Graph {
    Graph { offsets: vec![0, 3, 5], weights: vec![0.5, 1.5, 2.5], name: "path".to_owned() }
}

/// Can neither be serialised nor copied: a body that captures it does not compile.
#[derive(Debug)]
struct Rooted;

struct Search<'a> {
    graph: Graph,
    lent: &'a Graph,
    words: &'a [String],
    pair: (u8, Rooted, (u16, f32)),
    /// Never travels.
    rooted: Rooted,
    depth: u64,
}

const LIMIT: u64 = 9;

fn double(value: u64) -> u64 {
    value * 2
}

impl Search<'_> {
    async fn offset(&self, place: Place, vertex: usize) -> isles::Result<u32> {
        at!(place, self.graph.offsets[vertex]).await
    }

    async fn sum(&self, place: Place) -> isles::Result<f64> {
        at!(
            place,
            self.graph.weights.iter().sum::<f64>() + f64::from(self.lent.offsets[1]) + self.depth as f64
        )
        .await
    }

    async fn text(&self, place: Place) -> isles::Result<String> {
        at!(place, format!("{}/{}/{}", self.graph.name, self.words[0], self.words.len())).await
    }

    async fn positions(&self, place: Place) -> isles::Result<f32> {
        at!(place, self.pair.2.1 + f32::from(self.pair.0) + f32::from((self.pair.2).0)).await
    }

    async fn nested(&mut self, place: Place, next: Place) -> isles::Result<u64> {
        self.depth += 1;
        let _ = &self.rooted;
        at!(place, at!(next, self.depth + u64::from(self.graph.offsets[2])).await? + 1).await
    }
}

/// Declares the given name.
macro_rules! bind {
    ($name:ident, $value:expr, $body:expr) => {{
        let $name = $value;
        $body
    }};
}

#[isles::test(places = 2)]
async fn a_list_says_which_names_of_a_macro_of_the_program_are_variables() -> isles::Result<()> {
    let more = 4;
    everywhere!(place, at!(place, [] bind!(number, 3, number + 1)), 4);
    everywhere!(place, at!(place, [more] bind!(number, 3, number + more)), 7);
    Ok(())
}

/// Numbers whose type the compiler infers last are not taken for references.
#[isles::test(places = 2)]
async fn what_holds_numbers_of_no_type_yet_travels() -> isles::Result<()> {
    let (list, pair, nested) = (vec![1, 2], (3, 4), [Some((5, 6.5))]);
    everywhere!(place, at!(place, list.len() + pair.0 as usize + nested.len()), 6);
    everywhere!(place, at!(place, ((1, 2), vec![3])), ((1, 2), vec![3]));
    Ok(())
}

#[isles::test(places = 2)]
async fn field_paths_travel_without_the_rest_of_self() -> isles::Result<()> {
    let lent = graph();
    let words = ["one".to_owned(), "two".to_owned()];
    let mut search = Search {
        graph: graph(),
        lent: &lent,
        words: &words,
        pair: (1, Rooted, (2, 0.5)),
        rooted: Rooted,
        depth: 7,
    };
    everywhere!(place, search.offset(place, 1), 3);
    everywhere!(place, search.sum(place), 14.5);
    everywhere!(place, search.text(place), "path/one/2");
    everywhere!(place, search.positions(place), 3.5);
    let mut depth = 7;
    for place in places() {
        for next in places() {
            depth += 1;
            assert_eq!(search.nested(place, next).await?, depth + 6);
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Town {
    name: String,
    people: u32,
}

impl Town {
    async fn described(&self, place: Place) -> isles::Result<String> {
        at!(place, self.describe("!")).await
    }

    async fn shown(&self, place: Place) -> isles::Result<String> {
        at!(place, format!("{self:?} {}", Self::letters(&self.name))).await
    }

    async fn consumed(self, place: Place) -> isles::Result<Town> {
        at!(place, self).await
    }

    fn describe(&self, end: &str) -> String {
        format!("{} {}{end}", self.name, self.people)
    }

    fn letters(name: &str) -> usize {
        name.len()
    }
}

#[isles::test(places = 2)]
async fn self_travels_whole_when_it_is_used_whole() -> isles::Result<()> {
    let town = Town { name: "Rye".to_owned(), people: 4 };
    everywhere!(place, town.described(place), "Rye 4!");
    everywhere!(place, town.shown(place), "Town { name: \"Rye\", people: 4 } 3");
    everywhere!(place, town.clone().consumed(place), town);
    Ok(())
}

#[isles::test(places = 2)]
async fn values_and_references_keep_their_types() -> isles::Result<()> {
    let (number, floats, text) = (7u64, vec![1.0f64, 2.0], "text".to_owned());
    let (slice, reference, lent, array) = (&floats[1..], &floats, text.as_str(), [1u8; 100]);
    let (nested, map) = (vec![vec![1u8], vec![]], BTreeMap::from([("a".to_owned(), 1)]));
    let words: &[String] = &["text".to_owned()];
    everywhere!(place, at!(place, number + 1), 8);
    everywhere!(place, at!(place, floats.capacity() >= 2 && floats[0] < floats[1]), true);
    everywhere!(place, at!(place, slice.first().copied()), Some(2.0));
    everywhere!(place, at!(place, reference.clone()), floats);
    everywhere!(place, at!(place, lent.to_uppercase()), "TEXT");
    everywhere!(place, at!(place, text.len() + array.len()), 104);
    everywhere!(place, at!(place, nested.concat()), [1]);
    everywhere!(place, at!(place, map["a"]), 1);
    everywhere!(place, at!(place, words.join("-")), "text");
    everywhere!(place, at!(place, (&number, &text) == (&7, &"text".to_owned())), true);
    Ok(())
}

#[isles::test(places = 2)]
async fn captured_variables_stay_with_the_caller() -> isles::Result<()> {
    let town = Town { name: "Rye".to_owned(), people: 4 };
    let list = vec![town.clone()];
    for place in places() {
        assert_eq!(at!(place, list.len()).await?, 1);
        assert_eq!(at!(place, list[0].people + town.people).await?, 8);
    }
    assert_eq!(list, [town]);
    Ok(())
}

#[isles::test(places = 2)]
async fn a_body_may_consume_what_it_takes() -> isles::Result<()> {
    for place in places() {
        let list = vec!["a".to_owned(), "b".to_owned()];
        let joined = at!(place, list.into_iter().rev().collect::<String>()).await?;
        assert_eq!(joined, "ba");
        let numbers = vec![3, 1, 2];
        let sorted = at!(place, {
            let mut numbers = numbers;
            numbers.sort();
            numbers
        });
        assert_eq!(sorted.await?, [1, 2, 3]);
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn macros_and_format_strings_are_seen_through() -> isles::Result<()> {
    let (x, width, town) = (5, 4, Town { name: "Rye".to_owned(), people: 4 });
    everywhere!(place, at!(place, format!("{x:>width$}|{}", town.people)), "   5|4");
    everywhere!(place, at!(place, format!("{x} {y}", y = town.name)), "5 Rye");
    everywhere!(place, at!(place, vec![x; width]), [5; 4]);
    everywhere!(place, at!(place, matches!(x, n if n > width)), true);
    everywhere!(
        place,
        at!(place, {
            use std::fmt::Write;
            assert!(x > 1, "{x}");
            let mut out = String::new();
            write!(out, "{x}{{width}}").is_ok().then_some(out)
        }),
        Some("5{width}".to_owned())
    );
    Ok(())
}

#[isles::test(places = 2)]
async fn shadowed_names_belong_to_the_body() -> isles::Result<()> {
    let (x, list) = (1, vec![1, 2, 3]);
    everywhere!(
        place,
        at!(place, {
            let x = x + 10;
            let inner = {
                let x = x * 2;
                x + 1
            };
            x + inner
        }),
        34
    );
    everywhere!(place, at!(place, list.iter().map(|x| x * 2).sum::<i32>() + x), 13);
    everywhere!(place, at!(place, if let Some(x) = list.first() { *x } else { x }), 1);
    everywhere!(
        place,
        at!(place, {
            let mut total = 0;
            for x in list.iter().skip(x as usize) {
                total += x;
            }
            total
        }),
        5
    );
    everywhere!(
        place,
        at!(
            place,
            match list.as_slice() {
                [first, .., last] if *last > x => first + last,
                _ => 0,
            }
        ),
        4
    );
    Ok(())
}

#[isles::test(places = 2)]
async fn functions_constants_and_types_do_not_travel() -> isles::Result<()> {
    let n = 4;
    everywhere!(place, at!(place, double(n) + LIMIT + u64::from(u8::MAX)), 272);
    everywhere!(
        place,
        at!(place, {
            const OFFSET: u64 = 1;
            fn triple(value: u64) -> u64 {
                value * 3
            }
            [n, n].iter().copied().map(triple).sum::<u64>() + OFFSET
        }),
        25
    );
    everywhere!(
        place,
        at!(place, Some(n).map(|n| Town { name: n.to_string(), people: n as u32 })),
        Some(Town { name: "4".to_owned(), people: 4 })
    );
    Ok(())
}

async fn extreme<T>(place: Place, list: &[T], chosen: T) -> isles::Result<T>
where
    T: Serialize + DeserializeOwned + PartialOrd + Clone,
{
    at!(place, list.iter().cloned().fold(chosen, |best, next| if next > best { next } else { best })).await
}

trait Measured {
    fn measure(&self) -> usize;

    async fn measured_at(&self, place: Place) -> isles::Result<usize>
    where
        Self: Sized + Serialize + DeserializeOwned,
    {
        at!(place, self.measure()).await
    }
}

impl Measured for Town {
    fn measure(&self) -> usize {
        self.name.len()
    }
}

struct Cell<T, const N: usize> {
    values: [T; N],
    rooted: Rooted,
}

impl<T: Serialize + DeserializeOwned + Copy + Debug, const N: usize> Cell<T, N> {
    async fn last(&self, place: Place) -> isles::Result<T> {
        let _ = &self.rooted;
        let list = self.values.to_vec();
        at!(place, list[N - 1]).await
    }
}

#[isles::test(places = 2)]
async fn generic_functions_may_surround_a_body() -> isles::Result<()> {
    everywhere!(place, extreme(place, &[1, 5, 3], 2), 5);
    everywhere!(place, extreme(place, &["b".to_owned(), "c".to_owned()], "a".to_owned()), "c");
    let town = Town { name: "Rye".to_owned(), people: 4 };
    everywhere!(place, town.measured_at(place), 3);
    let cell = Cell { values: [1.5, 2.5], rooted: Rooted };
    everywhere!(place, cell.last(place), 2.5);
    Ok(())
}

#[isles::test(places = 2)]
async fn a_question_mark_gives_its_error_to_the_call() -> isles::Result<()> {
    let (good, bad) = ("17", "seventeen");
    everywhere!(place, at!(place, good.parse::<u32>()? + 1), 18);
    everywhere!(place, at!(place, Ok(good.parse::<u32>()? + 1)), 18);
    everywhere!(
        place,
        at!(place, {
            if good.len() > 5 {
                return Ok(0);
            }
            good.parse::<u32>()?
        }),
        17
    );
    everywhere!(place, at!(place, if good.is_empty() { Err(std::fmt::Error)? } else { 1 }), 1);
    everywhere!(place, at!(place, good.parse::<u32>().is_ok_and(|n| n == 17)), true);
    for place in places() {
        let refused = at!(place, bad.parse::<u32>()? + 1).await;
        assert!(refused.unwrap_err().to_string().contains("invalid digit"));
        let returned = at!(place, bad.parse::<u32>().map_err(|error| error.to_string())).await?;
        assert_eq!(returned, Err("invalid digit found in string".to_owned()));
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn return_leaves_the_body_only() -> isles::Result<()> {
    let n = 3;
    everywhere!(
        place,
        at!(place, {
            if n > 2 {
                return "large".to_owned();
            }
            "small".to_owned()
        }),
        "large"
    );
    Ok(())
}

#[isles::test(places = 2)]
async fn bodies_await_and_nest() -> isles::Result<()> {
    let (x, list) = (1u64, vec![1u64, 2]);
    everywhere!(place, at!(place, async { x + 1 }.await + std::future::ready(list[1]).await), 4);
    for place in places() {
        for next in places() {
            let answer = at!(place, {
                let y = x + 1;
                at!(next, x + y + list.iter().sum::<u64>()).await? + y
            });
            assert_eq!(answer.await?, 8);
            assert!(at!(place, at!(next, at!(place, here() == place).await?).await?).await?);
        }
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn a_list_says_what_travels() -> isles::Result<()> {
    let (graph, word, a) = (graph(), "w".to_owned(), vec![1, 2]);
    everywhere!(
        place,
        at!(place, [graph.offsets, &word, n = a.len()] graph.offsets.len() + word.len() + n),
        6
    );
    everywhere!(place, at!(place, [word] { word.clone() + "!" }), "w!");
    everywhere!(place, at!(place, [] 5), 5);
    everywhere!(place, at!(place, [1, 2, 3].len()), 3);
    everywhere!(place, at!(place, [a[0], 7][1]), 7);
    Ok(())
}

#[isles::test(places = 2)]
async fn tasks_take_their_captures_along() -> isles::Result<()> {
    let (graph, words) = (graph(), vec!["a", "b"].into_iter().map(str::to_owned).collect::<Vec<_>>());
    finish(async {
        for place in places() {
            let sum = graph.offsets.iter().sum::<u32>();
            spawn_at!(place, assert_eq!(here(), place));
            spawn_at!(place, {
                if words.is_empty() {
                    return;
                }
                assert_eq!(graph.offsets.iter().sum::<u32>(), sum, "{words:?}");
            });
            spawn_at!(place, [n = words.len(), words] assert_eq!(words.len(), n));
            spawn_at!(place, {
                let first = words[0].parse::<char>()?;
                assert_eq!(first, 'a');
            });
            spawn_at!(place, "5".parse::<u32>().map(|n| assert_eq!(n, 5)));
            for next in places() {
                spawn_at!(place, spawn_at!(next, assert_eq!(words[1], "b")));
            }
        }
    })
    .await
}

#[isles::test(places = 2)]
async fn the_error_of_a_task_ends_in_its_finish() {
    for place in places() {
        let word = "x";
        let ended = finish(async {
            spawn_at!(place, {
                word.parse::<u32>()?;
            });
        });
        assert!(ended.await.unwrap_err().to_string().contains("invalid digit"));
    }
}

#[isles::test(places = 2)]
async fn a_handle_travels_in_place_of_its_fields() -> isles::Result<()> {
    /// Behind a handle, so its second field need not travel; a copy of the first would be wrong.
    #[derive(Serialize, Deserialize)]
    struct Index {
        sizes: Vec<u32>,
        #[serde(skip)]
        local: Option<std::rc::Rc<u8>>,
    }
    struct Job {
        index: Replicated<Index>,
        rooted: Rooted,
    }
    let job = Job { index: Replicated::new(Index { sizes: vec![1, 2], local: None }).await?, rooted: Rooted };
    let (index, lent) = (&job.index, &job);
    let _ = &job.rooted;
    everywhere!(place, at!(place, job.index.sizes[1]), 2);
    everywhere!(place, at!(place, job.index.local.is_none() && job.index.sizes.len() == 2), true);
    everywhere!(place, at!(place, index.sizes[0] + lent.index.sizes[1]), 3);
    Ok(())
}

#[isles::test(places = 2)]
async fn large_arrays_arrive_whole() -> isles::Result<()> {
    let floats: Vec<f64> = (0..300_000).map(f64::from).collect();
    let (slice, whole) = (&floats[..], floats.iter().sum::<f64>());
    everywhere!(place, at!(place, slice.iter().sum::<f64>()), whole);
    everywhere!(place, at!(place, slice.to_vec()), floats);
    everywhere!(place, at!(place, floats.len()), 300_000);
    Ok(())
}

#[isles::test(places = 2)]
async fn a_call_that_is_not_polled_does_nothing() {
    let list = vec![1];
    for place in places() {
        drop(at!(place, panic!("never runs, {list:?}")));
    }
}
