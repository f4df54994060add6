//! Tests of the names in format strings.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let names: Vec<String> =
        names(&LitStr::new(text, Span::call_site())).iter().map(ToString::to_string).collect();
    assert_eq!(names.join(" "), expected, "{text}");
}

#[test]
fn names_are_found_and_positions_are_not() {
    check("plain", "");
    check("{} {0} {1:?}", "");
    check("{x} {y:?} {self}", "x y self");
    check("{_x}{größe}", "_x größe");
}

#[test]
fn escaped_braces_hold_no_names() {
    check("{{x}} {{{y}}}", "y");
    check("{{", "");
    check("{unfinished", "");
}

#[test]
fn widths_and_precisions_are_names_too() {
    check("{:width$}", "width");
    check("{x:>width$.precision$}", "x width precision");
    check("{:0w$} {:+.p$} {:*^w$} {:#08.3}", "w p w");
    check("{:1$} {:.*}", "");
}
