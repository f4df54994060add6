//! Variables and field paths that a body uses and does not declare itself.
//!
//! A macro sees no types and no definitions, so the rule is by spelling: a path of one segment that starts
//! with a small letter, that nothing in the body declares and that is not called like a function, is a
//! variable from outside. Constants, types and functions are thus never captured. Invariant: scopes follow
//! the language; a name declared in the body hides the one outside from its declaration to the end of its
//! block, and not a token longer.

use crate::call::{Call, FieldPath, Item};
use crate::invocation::{self, Part};
use crate::select::Select;
use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Member, Pat, Stmt};

/// A used variable or field. Without fields it is used as a whole.
pub struct Used<Name> {
    /// The variable, or the field within its parent.
    pub name: Name,
    /// The fields that are used; empty if the whole is used.
    pub fields: Vec<Used<Member>>,
}

impl<Name> Used<Name> {
    /// Adds the use of the field at `members`; a use of the whole replaces those of its fields.
    fn add(&mut self, members: &[Member]) {
        let Some((member, deeper)) = members.split_first() else {
            self.fields.clear();
            return;
        };
        match self.fields.iter_mut().find(|used| used.name == *member) {
            Some(used) if used.fields.is_empty() => {}
            Some(used) => used.add(deeper),
            None => self.fields.push(Used::new(member.clone(), deeper)),
        }
    }

    /// A use that is not listed yet.
    fn new(name: Name, members: &[Member]) -> Self {
        let fields = members.split_first().map(|(member, deeper)| Used::new(member.clone(), deeper));
        Used { name, fields: fields.into_iter().collect() }
    }
}

/// Adds the use of `path` to `roots`.
pub fn add(roots: &mut Vec<Used<Ident>>, path: FieldPath) {
    match roots.iter_mut().find(|used| used.name == path.root) {
        Some(used) if used.fields.is_empty() => {}
        Some(used) => used.add(&path.members),
        None => roots.push(Used::new(path.root, &path.members)),
    }
}

/// The free variables of `body`, in the order of their first use.
///
/// # Errors
/// Each macro call that cannot be read, all in one error.
pub fn of(body: &Expr) -> syn::Result<Vec<Used<Ident>>> {
    let mut walk = Walk { scopes: vec![Vec::new()], roots: Vec::new(), error: None };
    walk.visit_expr(body);
    match walk.error {
        None => Ok(walk.roots),
        Some(error) => Err(error),
    }
}

/// A walk over a body, with the names that are declared where it stands.
struct Walk {
    /// Declared names, innermost scope last.
    scopes: Vec<Vec<Ident>>,
    roots: Vec<Used<Ident>>,
    error: Option<syn::Error>,
}

impl Walk {
    /// Walks in a scope of its own.
    fn scoped(&mut self, walk: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        walk(self);
        self.scopes.pop();
    }

    /// Declares the names that `pattern` binds, in the innermost scope.
    fn declare(&mut self, pattern: &Pat) {
        let mut names = Names(Vec::new());
        names.visit_pat(pattern);
        self.declare_names(names.0);
    }

    fn declare_names(&mut self, names: impl IntoIterator<Item = Ident>) {
        self.scopes.last_mut().expect("a walk is always in a scope").extend(names);
    }

    /// Notes the use of `path`, if its root is a variable from outside.
    fn note(&mut self, path: FieldPath) {
        if !self.is_declared(&path.root) && is_variable(&path.root) {
            add(&mut self.roots, path);
        }
    }

    fn fail(&mut self, error: syn::Error) {
        match &mut self.error {
            Some(first) => first.combine(error),
            None => self.error = Some(error),
        }
    }

    /// Refuses an assignment to a variable from outside: at the caller's place it would change the original, elsewhere
    /// a copy.
    fn refuse_change(&mut self, changed: &Expr) {
        let Some(root) = root(changed) else { return };
        if is_variable(root) && !self.is_declared(root) {
            let message = format!(
                "a body cannot change `{root}`: at another place it would change a copy; give the new value back, \
                 or work on a copy (`let mut {copy} = {root}.clone();`)",
                copy = if root == "self" { "own".to_owned() } else { root.to_string() },
            );
            self.fail(syn::Error::new_spanned(changed, message));
        }
    }

    fn is_declared(&self, name: &Ident) -> bool {
        self.scopes.iter().flatten().any(|declared| declared == name)
    }

    fn walk_part(&mut self, part: &Part) {
        match part {
            Part::Expr(expr) => self.visit_expr(expr),
            Part::Name(name) => self.note(FieldPath { root: name.clone(), members: Vec::new() }),
            Part::Call(call) => self.walk_call(call),
            Part::Select(select) => self.walk_select(select),
            Part::Match(value, pattern, condition) => {
                self.visit_expr(value);
                self.scoped(|walk| {
                    walk.declare(pattern);
                    condition.iter().for_each(|condition| walk.visit_expr(condition));
                });
            }
        }
    }

    fn walk_select(&mut self, select: &Select) {
        select.branches.iter().for_each(|branch| self.visit_expr(&branch.future));
        for branch in &select.branches {
            self.scoped(|walk| {
                walk.declare(&branch.pattern);
                walk.visit_expr(&branch.body);
            });
        }
        select.default.iter().for_each(|body| self.visit_expr(body));
    }

    /// Visits a nested call, which uses what its place and its captures use.
    fn walk_call(&mut self, call: &Call) {
        self.visit_expr(&call.place);
        let Some(list) = &call.list else {
            self.visit_expr(&call.body);
            return;
        };
        for item in list {
            match item {
                Item::Path(path) => {
                    self.note(FieldPath { root: path.root.clone(), members: path.members.clone() });
                }
                Item::Reference(name) => self.note(FieldPath { root: name.clone(), members: Vec::new() }),
                Item::Named(_, value) => self.visit_expr(value),
            }
        }
    }
}

/// Returns the variable at the root of `expr`.
fn root(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(inner) => root(&inner.expr),
        Expr::Group(inner) => root(&inner.expr),
        _ => None,
    }
}

/// Returns `true` if `name` is spelt like a variable.
fn is_variable(name: &Ident) -> bool {
    let text = name.to_string();
    let trimmed = text.trim_start_matches("r#").trim_start_matches('_');
    trimmed.chars().next().is_some_and(|first| !first.is_uppercase()) && text != "super" && text != "crate"
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_expr_path(&mut self, expr: &'ast syn::ExprPath) {
        if let (None, Some(name)) = (&expr.qself, expr.path.get_ident()) {
            self.note(FieldPath { root: name.clone(), members: Vec::new() });
        }
    }

    fn visit_expr_field(&mut self, expr: &'ast syn::ExprField) {
        match FieldPath::of(&Expr::Field(expr.clone())) {
            Some(path) => self.note(path),
            None => self.visit_expr(&expr.base),
        }
    }

    fn visit_expr_call(&mut self, expr: &'ast syn::ExprCall) {
        let named = matches!(&*expr.func, Expr::Path(path) if path.path.get_ident().is_some_and(|name| name != "self"));
        if !named {
            self.visit_expr(&expr.func);
        }
        expr.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_expr_assign(&mut self, expr: &'ast syn::ExprAssign) {
        self.refuse_change(&expr.left);
        visit::visit_expr_assign(self, expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if assigns(&expr.op) {
            self.refuse_change(&expr.left);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_reference(&mut self, expr: &'ast syn::ExprReference) {
        if expr.mutability.is_some() {
            self.refuse_change(&expr.expr);
        }
        visit::visit_expr_reference(self, expr);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match invocation::parts(call) {
            Ok(parts) => parts.iter().for_each(|part| self.walk_part(part)),
            Err(error) => self.fail(error),
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.scoped(|walk| {
            let items = block.stmts.iter().filter_map(|stmt| match stmt {
                Stmt::Item(item) => Some(item),
                _ => None,
            });
            items.for_each(|item| walk.declare_names(item_names(item)));
            block.stmts.iter().for_each(|stmt| walk.visit_stmt(stmt));
        });
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
            init.diverge.iter().for_each(|(_, diverge)| self.visit_expr(diverge));
        }
        self.declare(&local.pat);
    }

    fn visit_expr_let(&mut self, expr: &'ast syn::ExprLet) {
        self.visit_expr(&expr.expr);
        self.declare(&expr.pat);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.scoped(|walk| {
            walk.visit_expr(&expr.cond);
            walk.visit_block(&expr.then_branch);
        });
        expr.else_branch.iter().for_each(|(_, otherwise)| self.visit_expr(otherwise));
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.scoped(|walk| {
            walk.visit_expr(&expr.cond);
            walk.visit_block(&expr.body);
        });
    }

    fn visit_expr_for_loop(&mut self, expr: &'ast syn::ExprForLoop) {
        self.visit_expr(&expr.expr);
        self.scoped(|walk| {
            walk.declare(&expr.pat);
            walk.visit_block(&expr.body);
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.scoped(|walk| {
            walk.declare(&arm.pat);
            if let Pat::Guard(guarded) = &arm.pat {
                walk.visit_expr(&guarded.guard);
            }
            walk.visit_expr(&arm.body);
        });
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.scoped(|walk| {
            closure.inputs.iter().for_each(|input| walk.declare(input));
            walk.visit_expr(&closure.body);
        });
    }

    // Items see no variables; types and attributes hold none.
    fn visit_item(&mut self, _item: &'ast syn::Item) {}
    fn visit_type(&mut self, _type: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _argument: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _attribute: &'ast syn::Attribute) {}
}

/// Returns `true` if the operator changes its left side.
fn assigns(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// The names that an item declares for values: functions, constants, imports.
fn item_names(item: &syn::Item) -> Vec<Ident> {
    match item {
        syn::Item::Fn(item) => vec![item.sig.ident.clone()],
        syn::Item::Const(item) => vec![item.ident.clone()],
        syn::Item::Static(item) => vec![item.ident.clone()],
        syn::Item::Use(item) => {
            let mut names = Names(Vec::new());
            names.visit_use_tree(&item.tree);
            names.0
        }
        _ => Vec::new(),
    }
}

/// The names that a pattern or an import declares.
struct Names(Vec<Ident>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.push(pattern.ident.clone());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_use_name(&mut self, name: &'ast syn::UseName) {
        self.0.push(name.ident.clone());
    }

    fn visit_use_rename(&mut self, rename: &'ast syn::UseRename) {
        self.0.push(rename.rename.clone());
    }

    fn visit_expr(&mut self, _expr: &'ast Expr) {}
    fn visit_type(&mut self, _type: &'ast syn::Type) {}
}

#[cfg(test)]
mod tests;
