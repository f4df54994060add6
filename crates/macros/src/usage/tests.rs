//! Tests of the analysis: from a body to the list of its captures.

use super::*;

/// The captures of `body`, as `a b.c.d`, in order of first use.
fn captures(body: &str) -> String {
    let body: Expr = syn::parse_str(body).expect("the test's body is an expression");
    match of(&body) {
        Ok(roots) => roots
            .iter()
            .flat_map(|root| paths(root.name.to_string(), &root.fields))
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => format!("error: {error}"),
    }
}

fn paths(prefix: String, fields: &[Used<Member>]) -> Vec<String> {
    if fields.is_empty() {
        return vec![prefix];
    }
    let path = |field: &Used<Member>| match &field.name {
        Member::Named(name) => format!("{prefix}.{name}"),
        Member::Unnamed(index) => format!("{prefix}.{}", index.index),
    };
    fields.iter().flat_map(|field| paths(path(field), &field.fields)).collect()
}

/// Asserts that `body` captures `expected`.
#[track_caller]
fn check(body: &str, expected: &str) {
    assert_eq!(captures(body), expected, "{body}");
}

#[test]
fn variables_are_captured_and_spelt_otherwise_they_are_not() {
    check("a + b", "a b");
    check("a + LIMIT + f64::MAX + crate::b + Kind::A as usize + N", "a");
    check("f(x, g(y))", "x y");
    check("Some(x)", "x");
    check("Vec::<T>::with_capacity(n)", "n");
    check("map(f::<u8>, x)", "x");
    check("_x + __y", "_x __y");
    check("r#type + 1", "r#type");
    check("42", "");
}

#[test]
fn field_paths_are_captured_alone() {
    check("self.offsets[vertex]", "self.offsets vertex");
    check(
        "self.graph.offsets[0] + self.graph.weights[0] + self.n",
        "self.graph.offsets self.graph.weights self.n",
    );
    check("self.offsets.len()", "self.offsets");
    check("&self.offsets[a.b..a.c]", "self.offsets a.b a.c");
    check("pair.0 + pair.1.x", "pair.0 pair.1.x");
    check("nested.0.1", "nested.0.1");
    check("(self.a).b", "self.a.b");
    check("self.a.f(self.b).c", "self.a self.b");
    check("(*a).b", "a");
}

#[test]
fn a_whole_use_swallows_the_fields() {
    check("self.len() + self.n", "self");
    check("self.n + self.len()", "self");
    check("a.b.c + a.b.d + f(&a.b) + a.x", "a.b a.x");
    check("f(&a.b) + a.b.c", "a.b");
}

#[test]
fn declarations_hide_from_there_on() {
    check("{ let x = x + 1; x + y }", "x y");
    check("{ let y = { let x = 1; x }; x + y }", "x");
    check("{ x; let x = 1; x }", "x");
    check("{ let (a, [b, ..], S { c, d: e, .. }) = v; a + b + c + d + e }", "v d");
    check("{ let Some(x) = o else { return y; }; x }", "o y");
    check("{ let a @ (b, c) = v; a + b + c }", "v");
}

#[test]
fn branches_and_loops_have_scopes() {
    check("if let Some(x) = x { x } else { x }", "x");
    check("if let Some(a) = o && let Some(b) = a && b > c { a + b } else { b }", "o c b");
    check("{ if let Some(a) = o { a; } a }", "o a");
    check("while let Some(x) = next.take(x) { f(x) }", "next x");
    check("for i in 0..n { f(i) } ", "n");
    check("{ for i in i..n { i; } i }", "i n");
    check("match v { A(x) | B(x) if x > y => x, Some(z) => z + x, None => 0, _ => w }", "v y x w");
    check("match v { n @ 1..=9 => n, other => other }", "v");
    check("'outer: loop { break 'outer x }", "x");
    check("'a: { if c { break 'a 1 } 2 }", "c");
}

#[test]
fn a_select_evaluates_its_futures_and_binds_an_output_in_each_branch() {
    check(
        "select! { v = queue.recv() => { f(v, a) } () = late.as_mut() => b, default => c }",
        "queue late a b c",
    );
    check("isles::select! { Ok(v) = v.recv() => v, _ = g(w) => {} }", "v w");
    check("loop { select! { x = f(y) => break x, x = next() => { x; } } }", "y");
    check(
        "{ select! { x = f(y) => z = x } }",
        "error: a body cannot change `z`: at another place it would change a \
         copy; give the new value back, or work on a copy (`let mut z = z.clone();`)",
    );
}

#[test]
fn closures_bind_their_parameters() {
    check("v.iter().map(|x| x + y).filter(|&(a, _)| a > b)", "v y b");
    check("v.iter().fold(0, |sum, Point { x, .. }| sum + x + z)", "v z");
    check("(|x| x)(x)", "x");
    check("v.map(move |x: u8| -> u8 { x + k })", "v k");
    check("async { a.await }", "a");
    check("async move { let a = b; a }", "b");
}

#[test]
fn structures_and_other_expressions_are_walked() {
    check("Point { x, y: z, ..rest }", "x z rest");
    check("[a; 3].len() + [b, c][d]", "a b c d");
    check("(a, b..=c, &d, *e, -f, !g, h as u8, i?)", "a b c d e f g h i");
    check("unsafe { *p }", "p");
    check("<T as Trait>::CONST + x", "x");
    check("{ const { N + 1 } }", "");
    check("a.b(c)(d)[e].f", "a c d e");
}

#[test]
fn a_change_of_a_variable_from_outside_is_refused() {
    for body in ["x = 1", "x += 1", "x.y[0].z <<= 1", "f(&mut x)", "&mut self.n", "{ if c { (x) = y } }"] {
        assert!(captures(body).starts_with("error: a body cannot change `"), "{body}: {}", captures(body));
    }
    check("{ let mut x = x; x += 1; x.y = z; f(&mut x) }", "x z");
    check("*x.borrow_mut() += 1", "x");
    check("{ f(&mut v()) }", "");
}

#[test]
fn items_in_the_body_are_its_own() {
    check("{ fn double(x: u8) -> u8 { x * y } v.map(double) }", "v");
    check("{ v.map(double); fn double(x: u8) -> u8 { x } }", "v");
    check("{ use std::mem::{swap, take as grab}; v.map(swap).map(grab).map(take) }", "v take");
    check("{ const limit: u8 = 3; static other: u8 = 4; limit + other + x }", "x");
}

#[test]
fn the_standard_macros_are_read() {
    check(r#"println!("hello")"#, "");
    check(r#"println!("{x}")"#, "x");
    check(r#"println!("{} {y:?} {{z}} {0} {named}", x, named = w.a)"#, "x w.a y");
    check(r#"format!("{x:>width$.precision$} {y:08} {z:*^1$}")"#, "x width precision y z");
    check(r#"format!("{:0width$} {self}", self.n)"#, "self width");
    check(r#"write!(out, "{x}", )"#, "out x");
    check(r#"assert!(a > b, "{c}")"#, "a b c");
    check(r#"assert_eq!(self.a, b, "{c} {}", d)"#, "self.a b d c");
    check("vec![a; n]", "a n");
    check("vec![a, b.c]", "a b.c");
    check("dbg!(&x)", "x");
    check("matches!(v, Some(x) if x > y)", "v y");
    check("panic!()", "");
    check(r#"{ println!("{x}"); let x = 1; println!("{x}") }"#, "x");
    check(r#"{ let x = 1; println!("{x}"); }"#, "");
    check("concat!(stringify!(a b c), line!())", "");
    check(r#"tracing::info!("{x}", )"#, "x");
}

#[test]
fn nested_calls_use_what_their_bodies_use() {
    check("at!(there, x + self.n).await?", "there x self.n");
    check("isles::spawn_at!(p, { let x = x; f(x, y) })", "p x y");
    check("{ let p = 1; at!(p, [a.b, &c, d = e.len()] anything + z) }", "a.b c e");
    check("at!(p, at!(q, r))", "p q r");
}

#[test]
fn a_macro_that_cannot_be_read_asks_for_a_list() {
    check("join!(a, b.c)", "a b.c");
    check(
        "my::map! { a => b }",
        "error: the variables used by the macro `map!` are not visible from outside; list what travels: \
         `(place, [first, second] body)`",
    );
    check("{ fn f() { map! { a => b } } x }", "x");
}
