//! Ends of a body: with a value, with `?`, with `return`, or never.
//!
//! Syntax only, and only of the body itself: closures, `async` blocks, items and nested `at!` have ends of their own.

use crate::invocation::{self, Part};
use syn::visit::{self, Visit};
use syn::{Expr, Stmt};

/// Control flow of a body, which decides how it is wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// It uses `?`, so errors leave it.
    pub tries: bool,
    /// It uses `return`.
    pub returns: bool,
    /// Its last expression is `Ok(..)` or `Err(..)`, on some branch.
    pub ends_in_result: bool,
    /// Its last expression never gives a value.
    pub diverges: bool,
}

/// Returns the control flow of `body`.
pub fn of(body: &Expr) -> Flow {
    let mut search = Search(Flow::default());
    search.visit_expr(body);
    Flow { ends_in_result: ends_in_result(body), diverges: diverges(body), ..search.0 }
}

struct Search(Flow);

impl<'ast> Visit<'ast> for Search {
    fn visit_expr_try(&mut self, expr: &'ast syn::ExprTry) {
        self.0.tries = true;
        visit::visit_expr_try(self, expr);
    }

    fn visit_expr_return(&mut self, expr: &'ast syn::ExprReturn) {
        self.0.returns = true;
        visit::visit_expr_return(self, expr);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // An unreadable macro is allowed only with an explicit list; then its tokens are searched.
        let Ok(parts) = invocation::parts(call) else {
            self.0.tries |= call.tokens.to_string().contains('?');
            return;
        };
        for part in &parts {
            match part {
                Part::Expr(expr) => self.visit_expr(expr),
                Part::Call(call) => self.visit_expr(&call.place),
                Part::Match(value, _, condition) => {
                    self.visit_expr(value);
                    condition.iter().for_each(|condition| self.visit_expr(condition));
                }
                Part::Select(select) => {
                    for branch in &select.branches {
                        self.visit_expr(&branch.future);
                        self.visit_expr(&branch.body);
                    }
                    select.default.iter().for_each(|body| self.visit_expr(body));
                }
                Part::Name(_) => {}
            }
        }
    }

    fn visit_expr_closure(&mut self, _closure: &'ast syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _block: &'ast syn::ExprAsync) {}
    fn visit_item(&mut self, _item: &'ast syn::Item) {}
}

/// The last expressions of `expr`, one for each branch.
fn ends(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    match expr {
        Expr::Block(block) => block_ends(&block.block, visit),
        Expr::Unsafe(block) => block_ends(&block.block, visit),
        Expr::If(branch) => {
            block_ends(&branch.then_branch, visit);
            branch.else_branch.iter().for_each(|(_, otherwise)| ends(otherwise, visit));
        }
        Expr::Match(choice) => choice.arms.iter().for_each(|arm| ends(&arm.body, visit)),
        Expr::Paren(inner) => ends(&inner.expr, visit),
        Expr::Group(inner) => ends(&inner.expr, visit),
        Expr::Macro(call) => macro_ends(&call.mac, visit),
        other => visit(other),
    }
}

fn block_ends(block: &syn::Block, visit: &mut dyn FnMut(&Expr)) {
    match block.stmts.last() {
        Some(Stmt::Expr(last, None)) => ends(last, visit),
        Some(Stmt::Macro(last)) if last.semi_token.is_none() => macro_ends(&last.mac, visit),
        _ => {}
    }
}

/// Visits the ends of a macro, which only `select!` has.
fn macro_ends(call: &syn::Macro, visit: &mut dyn FnMut(&Expr)) {
    if let Some(mut select) = invocation::select(call) {
        select.bodies_mut().for_each(|body| ends(body, visit));
    }
}

/// Returns `true` if some end is literally `Ok(..)` or `Err(..)`.
fn ends_in_result(body: &Expr) -> bool {
    let mut found = false;
    ends(body, &mut |end| {
        let is_result = |name: &syn::Ident| name == "Ok" || name == "Err";
        found |= matches!(end, Expr::Call(call) if last_name(&call.func).is_some_and(is_result));
    });
    found
}

/// Returns `true` if `expr`, by its spelling, never gives a value.
pub fn diverges(expr: &Expr) -> bool {
    match expr {
        Expr::Block(block) => match block.block.stmts.last() {
            Some(Stmt::Expr(last, _)) => diverges(last),
            Some(Stmt::Macro(last)) => panics(&last.mac),
            _ => false,
        },
        Expr::Paren(inner) => diverges(&inner.expr),
        Expr::Group(inner) => diverges(&inner.expr),
        Expr::Macro(call) => panics(&call.mac),
        Expr::Call(call) => {
            let process = matches!(&*call.func, Expr::Path(path) if path.path.segments.len() > 1);
            process && last_name(&call.func).is_some_and(|name| name == "exit" || name == "abort")
        }
        Expr::Loop(endless) => !breaks(&endless.body),
        _ => false,
    }
}

fn panics(call: &syn::Macro) -> bool {
    let name = call.path.segments.last().map(|segment| segment.ident.to_string());
    matches!(name.as_deref(), Some("panic" | "todo" | "unimplemented" | "unreachable"))
}

/// The last segment of a path.
pub fn last_name(expr: &Expr) -> Option<&syn::Ident> {
    match expr {
        Expr::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// Returns `true` if there is a `break` anywhere in `block`; one that belongs to an inner loop counts too.
fn breaks(block: &syn::Block) -> bool {
    let mut search = Breaks(false);
    search.visit_block(block);
    search.0
}

struct Breaks(bool);

impl<'ast> Visit<'ast> for Breaks {
    fn visit_expr_break(&mut self, _expr: &'ast syn::ExprBreak) {
        self.0 = true;
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let Some(mut select) = invocation::select(call) else { return };
        for body in select.bodies_mut() {
            let mut search = Breaks(false);
            search.visit_expr(body);
            self.0 |= search.0;
        }
    }
}

#[cfg(test)]
mod tests;
