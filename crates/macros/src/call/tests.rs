//! Tests of the arguments: from tokens to the parsed arguments.

use super::*;
use quote::ToTokens;

/// Returns the parsed arguments, as `place | list | body`, or the error.
fn read(arguments: &str) -> String {
    match syn::parse_str::<Call>(arguments) {
        Ok(call) => {
            let list = match &call.list {
                None => "found".to_owned(),
                Some(items) => items.iter().map(item).collect::<Vec<_>>().join(", "),
            };
            format!("{} | {list} | {}", text(&call.place), text(&call.body))
        }
        Err(error) => format!("error: {error}"),
    }
}

fn item(item: &Item) -> String {
    match item {
        Item::Path(path) => {
            let members = path.members.iter().map(|member| format!(".{}", text(member)));
            format!("{}{}", path.root, members.collect::<String>())
        }
        Item::Reference(name) => format!("&{name}"),
        Item::Named(name, value) => format!("{name} = {}", text(value)),
    }
}

fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

#[track_caller]
fn check(arguments: &str, expected: &str) {
    assert_eq!(read(arguments), expected, "{arguments}");
}

#[test]
fn a_place_and_a_body_are_read() {
    check("p, x + 1", "p | found | x+1");
    check("self.next(1), { f(); x },", "self.next(1) | found | {f();x}");
    check("p, {x}", "p | found | x");
    check("p, match x { _ => 1 }", "p | found | match x{_=>1}".replace("match x", "matchx").as_str());
}

#[test]
fn a_bracket_is_a_list_where_no_array_can_stand() {
    check("p, [x] y", "p | x | y");
    check("p, [] 5", "p |  | 5");
    check("p, [graph.offsets, &word, n = a.len(),] { f() }", "p | graph.offsets, &word, n = a.len() | f()");
    check("p, [x] (y)", "p | x | (y)");
    check("p, [x] !y", "p | x | !y");
    check("p, [cell] *cell.lock()", "p | cell | *cell.lock()");
    check("p, [x] &x[1..]", "p | x | &x[1..]");
    check("p, [x] && x", "p | x | &&x");
    check("p, [x] -x", "p | x | -x");
    check("p, [x] (x, 1)", "p | x | (x,1)");
    check("p, [x] [x, 1]", "p | x | [x,1]");
    check("p, [x] [x; 3]", "p | x | [x;3]");
    check("p, [x] []", "p | x | []");
    check("p, [x] ::f::g(y)", "p | x | ::f::g(y)");
    check("p, [pair.0.1] pair.0.1", "p | pair.0.1 | pair.0.1");
    check("p, [self] self.f()", "p | self | self.f()");
}

#[test]
fn an_array_is_a_body_where_one_can_stand() {
    check("p, [x, y]", "p | found | [x,y]");
    check("p, [x, y].len()", "p | found | [x,y].len()");
    check("p, [x, y][0]", "p | found | [x,y][0]");
    check("p, [x] != y", "p | found | [x]!=y");
    check("p, [x; 3] as T", "p | found | [x;3]asT");
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    check("", "error: unexpected end of input, expected a place and a body: `(place, body)`");
    check("p", "error: the body is missing: `(place, body)`");
    check("p,", "error: unexpected end of input, the body is missing: `(place, body)`");
    check("p, let x = 1; x", "error: the body is one expression: put several statements into braces");
    check("p, f(); g()", "error: the body is one expression: put several statements into braces");
    check("p, f(), g()", "error: nothing may follow the body");
    check(
        "p, [x + 1] y",
        "error: a list of captures holds `name`, `name.field`, `&name` or `name = expression`",
    );
    check("p, [&x.y] y", "error: give the reference a name: `name = &...`");
    check("p, [&self] y", "error: write `self`: it travels as it is, as a value or as a reference");
}
