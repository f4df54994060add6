//! Tests of how bodies end: from a body to the names of the detected properties.

use super::*;

/// Asserts the control flow of `body`.
#[track_caller]
fn check(body: &str, expected: &str) {
    let flow = of(&syn::parse_str(body).expect("the test's body is an expression"));
    let found = [
        (flow.tries, "tries"),
        (flow.returns, "returns"),
        (flow.ends_in_result, "result"),
        (flow.diverges, "diverges"),
    ];
    let names: Vec<&str> = found.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    assert_eq!(names.join(" "), expected, "{body}");
}

#[test]
fn question_marks_and_returns_of_the_body_itself_are_found() {
    check("x + 1", "");
    check("f()? + 1", "tries");
    check("{ if c { return; } 1 }", "returns");
    check("{ while let Some(x) = next().await? { return Ok(x) } }", "tries returns");
    check(r#"println!("{}", f()?)"#, "tries");
    check("matches!(f()?, Some(_))", "tries");
    check("at!(p, x).await?", "tries");
    check("{ select! { x = f()? => g(), default => { return; } } 1 }", "tries returns");
}

#[test]
fn inner_bodies_keep_their_own_ends() {
    check("v.map(|x| x?)", "");
    check("async { f()?; return 1 }", "");
    check("{ fn g() -> Option<u8> { return h()?; } 1 }", "");
    check("at!(p, f()?)", "");
    check("at!(p()?, x)", "tries");
    check("spawn_at!(p, { return; })", "");
}

#[test]
fn a_literal_result_at_the_end_is_found_on_any_branch() {
    check("Ok(1)", "result");
    check("{ f(); Err(e) }", "result");
    check("if c { 1 } else { Ok(2) }", "result");
    check("match x { 1 => { Ok(1) } _ => panic!() }", "result");
    check("std::result::Result::Ok(1)", "result");
    check("{ f(); select! { _ = g() => Err(e), default => {} } }", "result");
    check("Ok(1).len()", "");
    check("{ Ok(1); }", "");
}

#[test]
fn bodies_without_an_end_are_found() {
    check("panic!()", "diverges");
    check("{ f(); unreachable!(\"x\"); }", "diverges");
    check("{ f(); todo!() }", "diverges");
    check("std::process::exit(3)", "diverges");
    check("loop { f().await }", "diverges");
    check("loop { break }", "");
    check("loop { select! { _ = f() => break } }", "");
    check("exit(3)", "");
    check("{ if c { panic!() } 1 }", "");
}
