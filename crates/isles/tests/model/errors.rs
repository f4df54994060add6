//! Conversion of errors of other libraries into errors of Isles, and back.

use isles::prelude::*;
use isles::{Error, ErrorKind, Flag, Launch, LaunchError, Machine, Plan, simulate};
use std::error::Error as Std;
use std::sync::atomic::{AtomicBool, Ordering};

fn of_anyhow(text: &str) -> anyhow::Result<u8> {
    use anyhow::Context;
    text.parse().context("no number").context("no answer")
}

fn of_box(text: &str) -> Result<u8, Box<dyn Std>> {
    Ok(text.parse()?)
}

fn of_shared_box(text: &str) -> Result<u8, Box<dyn Std + Send + Sync>> {
    Ok(text.parse()?)
}

fn own(text: &str) -> isles::Result<u8> {
    of_shared_box(text).map_err(Error::from_boxed)
}

#[test]
fn a_run_whose_trace_cannot_be_written_keeps_its_result() {
    let flags = [Flag { variable: "ISLES_TRACE", name: "--trace", value: "/dev/full" }];
    for fails in [false, true] {
        let launch = Launch::from_environment_with(Machine::Threads, &flags).unwrap().places(2);
        let main = move || async move { if fails { Err(Error::message("broken")) } else { Ok(()) } };
        let Err(LaunchError::Output { unwritten, ended }) = launch.run(main) else {
            panic!("it was written")
        };
        assert_eq!((unwritten.len(), unwritten[0].path.as_str()), (1, "/dev/full"));
        assert_eq!((ended.0.is_err(), ended.1.places.len()), (fails, 2));
    }
}

#[isles::test(places = 2)]
async fn a_body_takes_errors_of_any_library_with_their_causes() -> isles::Result<()> {
    let chain = "no answer: no number: invalid digit found in string";
    for place in places() {
        let (good, bad) = ("7".to_owned(), "x".to_owned());
        assert_eq!(at!(place, of_anyhow(&good)? + of_box(&good)?).await?, 14);
        let error = at!(place, of_anyhow(&bad)? + 1).await.unwrap_err();
        assert!(error.to_string().contains(chain), "{error}");
        assert_eq!((error.kind(), error.place()), (&ErrorKind::Failed, Some(place.id())));
        let error = at!(place, of_box(&bad)? + 1).await.unwrap_err();
        assert!(error.to_string().contains(": invalid digit"), "{error}");
        let error = at!(place, of_shared_box(&bad)? + of_box(&good)?).await.unwrap_err();
        assert!(error.to_string().contains(": invalid digit"), "{error}");
        let error = at!(place, Err::<u8, Box<dyn Std + Send + Sync>>("inline".into())?).await.unwrap_err();
        assert!(error.to_string().contains(": inline"), "{error}");
        let task = finish(async { spawn_at!(place, [bad] { of_shared_box(&bad)?; }) }).await.unwrap_err();
        assert!(task.to_string().contains(": invalid digit"), "{task}");
        let error = at!(place, {
            Err("a text")?;
            1
        })
        .await
        .unwrap_err();
        assert!(error.to_string().contains(": a text"), "{error}");
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn every_end_of_a_body_may_be_an_error_of_isles() -> isles::Result<()> {
    for place in places() {
        for way in 0..6_u8 {
            let got = at!(place, {
                let bad = "x".to_owned();
                match way {
                    0 => return own(&bad),
                    1 => return Err(Error::new(ErrorKind::Misused, "by hand")),
                    2 => own("7"),
                    3 => Err(Error::new(ErrorKind::Misused, "by hand")),
                    4 => Err(std::fmt::Error.into()),
                    7 => Ok::<_, Error>(7),
                    _ => Ok(own(&bad)? + 1),
                }
            })
            .await;
            let kind = got.as_ref().err().map(|error| error.kind().clone());
            let expected = match way {
                2 => None,
                1 | 3 => Some(ErrorKind::Misused),
                _ => Some(ErrorKind::Failed),
            };
            assert_eq!(kind, expected, "{way}: {got:?}");
        }
    }
    Ok(())
}

#[isles::test(places = 2)]
async fn tasks_and_finishes_end_with_errors_of_any_library() -> isles::Result<()> {
    let next = here().next();
    for error in [
        finish(async { spawn_at!(next, of_anyhow("x").map(|_| ())) }).await.unwrap_err(),
        finish(async { spawn(async { of_anyhow("x") }) }).await.unwrap_err(),
        finish(async { of_anyhow("x") }).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("no answer: no number: invalid"), "{error}");
    }
    Ok(())
}

/// An error with a thousand causes.
fn deep() -> anyhow::Result<()> {
    let root = Err(anyhow::anyhow!("the root"));
    (0..1000).fold(root, |result, number| anyhow::Context::context(result, format!("cause {number}")))
}

fn long() -> isles::Result<u8> {
    Err(Error::message("long ".repeat(1000)))
}

#[isles::test(places = 2)]
async fn a_long_text_is_cut_in_its_middle_alike_at_every_place() -> isles::Result<()> {
    let kept = |error: Error, place: Place| {
        let text = error.to_string();
        let (begin, end) =
            (format!("at {place}: cause 999: cause 998: "), ": cause 1: cause 0: the root (started at");
        assert!(
            text.starts_with(&begin) && text.contains(end) && text.contains(" bytes left out … "),
            "{text}"
        );
        let text = text.strip_prefix(&format!("at {place}: ")).unwrap();
        text.split_once(" (started at ").unwrap().0.to_owned()
    };
    let mut texts = Vec::new();
    for place in places() {
        texts.push(kept(at!(place, deep()?).await.unwrap_err(), place));
        texts.push(kept(finish(async { spawn_at!(place, deep()) }).await.unwrap_err(), place));
        let long = at!(place, long()? + 1).await.unwrap_err();
        assert!(long.to_string().len() < 1024 && long.to_string().contains(" bytes left out … "), "{long}");
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
    Ok(())
}

/// Returns the error of a task as seen by a function that does not know Isles' errors.
async fn outside(place: Place) -> Result<u8, Box<dyn Std>> {
    Ok(at!(place, own("x")? + 1).await?)
}

#[isles::test(places = 2)]
async fn errors_come_back_from_a_box_as_they_were() -> Result<(), Box<dyn Std + Send + Sync>> {
    let next = here().next();
    let error = outside(next).await.unwrap_err();
    let back = finish(async { Err::<(), _>(error) }).await.unwrap_err();
    assert_eq!(back.place(), Some(next.id()));
    at!(next, own("7")? + 1).await?;
    Ok(())
}

/// An error that does not implement the trait of the standard library.
#[derive(Debug)]
struct Plain;

#[isles::test(places = 1, machines = [threads])]
async fn a_test_may_give_any_error_that_can_be_printed() -> Result<(), Plain> {
    Ok(())
}

/// With the feature `anyhow`, `?` is enough for the conversion to `anyhow`.
#[cfg(feature = "anyhow")]
#[isles::test(places = 1)]
async fn anyhow_takes_errors_of_isles_and_they_are_found_inside() -> anyhow::Result<()> {
    async fn inside() -> anyhow::Result<u8> {
        Ok(at!(here(), own("x")? + 1).await?)
    }
    let error = inside().await.unwrap_err();
    assert!(error.downcast_ref::<isles::StdError>().is_some());
    Ok(())
}

/// Each run checks the panic hook, which is one for the whole process.
#[test]
fn the_line_of_a_panic_is_known_while_other_runs_begin_and_end() {
    let is_over = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        // Relaxed is enough: nothing else is read after it.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                simulate(1, Plan::calm(0), || async {}).0.unwrap();
            }
        });
        let results: Vec<String> = (0..1_000)
            .map(|seed| {
                simulate(1, Plan::calm(seed), || async { panic!("broken") }).0.unwrap_err().to_string()
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        results
    });
    let unknown = results.iter().filter(|text| !text.contains(file!())).count();
    assert_eq!(unknown, 0, "of {}: {}", results.len(), results[0]);
}
