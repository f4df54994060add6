//! Tests of the renaming of `self`.

use super::*;
use quote::ToTokens;

#[track_caller]
fn check(body: &str, expected: &str) {
    let renamed = without_self(&syn::parse_str(body).expect("the test's body is an expression"));
    let expected: Expr = syn::parse_str(&expected.replace('@', SELF)).expect("so is the expected one");
    assert_eq!(renamed.to_token_stream().to_string(), expected.to_token_stream().to_string());
}

#[test]
fn self_is_renamed_wherever_it_is_a_value() {
    check("self.f(self, &self.x[self.y])", "@.f(@, &@.x[@.y])");
    check("v.map(|x| self.x + x)", "v.map(|x| @.x + x)");
    check(r#"println!("{self:?} {self} {{self}} {}", self.x)"#, r#"println!("{@:?} {@} {{self}} {}", @.x)"#);
    check("at!(self.place, { vec![self.x] })", "at!(@.place, { vec![@.x] })");
    check("{ assert!(self.x); self }", "{ assert!(@.x); @ }");
}

#[test]
fn another_self_stays() {
    check("self::f(Self::G)", "self::f(Self::G)");
    check("println!(\"{}\", self::f())", "println!(\"{}\", self::f())");
    check(
        "{ impl T { fn f(&self) -> u8 { self.0 } } self.0 }",
        "{ impl T { fn f(&self) -> u8 { self.0 } } @.0 }",
    );
    check(r#"println!("{}", "{self}")"#, r#"println!("{}", "{self}")"#);
    check("\"{self}\"", "\"{self}\"");
}
