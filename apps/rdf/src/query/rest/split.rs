//! Splits a query into parts that places evaluate together, and the rest, which the first place evaluates over them.
//!
//! The largest parts that have a [`Node`] become tables; the rest refers to a table by a basic graph pattern over the
//! names of its columns. Triples that the rest still needs, for paths and `EXISTS`, are sent to the first place. It
//! evaluates nothing. Invariant: the rest over its tables has the solutions of the query.

use super::dataset::{column_name, constant_name};
use crate::query::algebra::{Node, Translation, balanced};
use crate::query::table::Table;
use crate::store::term;
use oxrdf::{BlankNode, NamedNode, Variable};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::collections::BTreeSet;

/// Prefix of the variables that stand for rows of tables.
const ROW: &str = "isles_row_";

/// Replaces each largest part for which `replace` returns a value, from left to right.
fn rewritten(
    pattern: &GraphPattern,
    replace: &mut impl FnMut(&GraphPattern) -> Option<GraphPattern>,
) -> GraphPattern {
    if let Some(replaced) = replace(pattern) {
        return replaced;
    }
    let mut boxed = |inner: &GraphPattern| Box::new(rewritten(inner, replace));
    match pattern {
        GraphPattern::Join { left, right } => GraphPattern::Join { left: boxed(left), right: boxed(right) },
        GraphPattern::LeftJoin { left, right, expression } => {
            GraphPattern::LeftJoin { left: boxed(left), right: boxed(right), expression: expression.clone() }
        }
        GraphPattern::Union { left, right } => GraphPattern::Union { left: boxed(left), right: boxed(right) },
        GraphPattern::Minus { left, right } => GraphPattern::Minus { left: boxed(left), right: boxed(right) },
        GraphPattern::Filter { expr, inner } => {
            GraphPattern::Filter { expr: expr.clone(), inner: boxed(inner) }
        }
        GraphPattern::Extend { inner, variable, expression } => GraphPattern::Extend {
            inner: boxed(inner),
            variable: variable.clone(),
            expression: expression.clone(),
        },
        GraphPattern::OrderBy { inner, expression } => {
            GraphPattern::OrderBy { inner: boxed(inner), expression: expression.clone() }
        }
        GraphPattern::Project { inner, variables } => {
            GraphPattern::Project { inner: boxed(inner), variables: variables.clone() }
        }
        GraphPattern::Distinct { inner } => GraphPattern::Distinct { inner: boxed(inner) },
        GraphPattern::Reduced { inner } => GraphPattern::Reduced { inner: boxed(inner) },
        GraphPattern::Slice { inner, start, length } => {
            GraphPattern::Slice { inner: boxed(inner), start: *start, length: *length }
        }
        GraphPattern::Group { inner, variables, aggregates } => GraphPattern::Group {
            inner: boxed(inner),
            variables: variables.clone(),
            aggregates: aggregates.clone(),
        },
        other => other.clone(),
    }
}

/// Returns the parts of a query that places evaluate together, from left to right.
pub fn parts(pattern: &GraphPattern, translation: &mut Translation) -> Vec<Node> {
    let mut nodes = Vec::new();
    rewritten(pattern, &mut |part| {
        nodes.push(translation.node(part)?);
        Some(GraphPattern::default())
    });
    nodes
}

/// Returns the rest of a query over the tables computed from its parts.
pub fn rest(pattern: &GraphPattern, translation: &mut Translation, tables: &[Table]) -> GraphPattern {
    let mut next = 0;
    let with_tables = rewritten(pattern, &mut |part| {
        if translation.node(part).is_none() {
            return each_graph(part, translation.graph_names.as_deref().unwrap_or_default());
        }
        next += 1;
        Some(table_pattern(next - 1, &tables[next - 1], &translation.variables))
    });
    ordered(&with_tables)
}

/// Returns a pattern with each `GRAPH` of a variable that contains a sub-query replaced; see [`each_graph`].
pub fn by_graph(pattern: &GraphPattern, names: &[Vec<u8>]) -> GraphPattern {
    rewritten(pattern, &mut |part| each_graph(part, names))
}

/// Returns `true` if the text of a pattern may have a sub-query.
fn has_sub_query(pattern: &GraphPattern) -> bool {
    pattern.to_string().contains("SELECT")
}

/// Rewrites `GRAPH` of a variable around a sub-query as the union over the graphs with these names, which is its
/// definition (SPARQL 1.1, section 18.6); `spareval` would evaluate the sub-query over all of them together. The
/// algebra has no constant blank nodes; [`constant_name`] stands for them.
fn each_graph(pattern: &GraphPattern, names: &[Vec<u8>]) -> Option<GraphPattern> {
    let GraphPattern::Graph { name: NamedNodePattern::Variable(variable), inner } = pattern else {
        return None;
    };
    if !has_sub_query(inner) {
        return None;
    }
    let of_graph = |name: &Vec<u8>| {
        let name = constant_name(&term::decode(name))?;
        let bindings = vec![vec![Some(GroundTerm::NamedNode(name.clone()))]];
        let left = GraphPattern::Values { variables: vec![variable.clone()], bindings };
        let right = GraphPattern::Graph { name: name.into(), inner: inner.clone() };
        Some(GraphPattern::Join { left: Box::new(left), right: Box::new(right) })
    };
    let union = |left, right| GraphPattern::Union { left: Box::new(left), right: Box::new(right) };
    let none = GraphPattern::Values { variables: vec![variable.clone()], bindings: Vec::new() };
    Some(balanced(names.iter().filter_map(of_graph).collect(), union).unwrap_or(none))
}

/// Completes each order with all variables of its result, and adds one where solutions are limited, sampled or joined
/// to a text, so that the result does not depend on the number of places.
pub fn ordered(pattern: &GraphPattern) -> GraphPattern {
    rewritten(pattern, &mut |part| {
        Some(match part {
            GraphPattern::Slice { inner, start, length } => {
                GraphPattern::Slice { inner: Box::new(cut(inner)), start: *start, length: *length }
            }
            GraphPattern::Project { inner, variables } => {
                let GraphPattern::OrderBy { inner, expression } = inner.as_ref() else { return None };
                let inner = by_all(ordered(inner), expression.clone(), variables);
                GraphPattern::Project { inner, variables: variables.clone() }
            }
            GraphPattern::Group { inner, variables, aggregates } if has_ordered(aggregates) => {
                let mut all = BTreeSet::new();
                inner.on_in_scope_variable(|variable| _ = all.insert(variable));
                let is_own = |variable: &&Variable| !variable.as_str().starts_with(ROW);
                let all: Vec<Variable> = all.into_iter().filter(is_own).cloned().collect();
                GraphPattern::Group {
                    inner: by_all(ordered(inner), Vec::new(), &all),
                    variables: variables.clone(),
                    aggregates: aggregates.clone(),
                }
            }
            GraphPattern::Graph { name, inner } => {
                GraphPattern::Graph { name: name.clone(), inner: Box::new(ordered(inner)) }
            }
            _ => return None,
        })
    })
}

/// Returns a pattern with a limit or offset, with its solutions ordered.
fn cut(pattern: &GraphPattern) -> GraphPattern {
    match pattern {
        GraphPattern::Distinct { inner } => GraphPattern::Distinct { inner: Box::new(cut(inner)) },
        GraphPattern::Reduced { inner } => GraphPattern::Reduced { inner: Box::new(cut(inner)) },
        GraphPattern::Project { inner, variables } if !is_ordered(inner) => GraphPattern::Project {
            inner: by_all(ordered(inner), Vec::new(), variables),
            variables: variables.clone(),
        },
        other => ordered(other),
    }
}

/// Orders the solutions of `inner` by `expression` and then by all `variables`: by their values, and equal ones by
/// their text and type.
fn by_all(
    inner: GraphPattern,
    mut expression: Vec<OrderExpression>,
    variables: &[Variable],
) -> Box<GraphPattern> {
    let value = |variable: &Variable| Expression::Variable(variable.clone());
    let call = |function: Function, variable| Expression::FunctionCall(function, vec![value(variable)]);
    expression.extend(variables.iter().map(|variable| OrderExpression::Asc(value(variable))));
    for function in [Function::Str, Function::Datatype] {
        let calls = variables.iter().map(|variable| call(function.clone(), variable));
        expression.extend(calls.map(OrderExpression::Asc));
    }
    Box::new(GraphPattern::OrderBy { inner: Box::new(inner), expression })
}

/// Returns `true` if the value of an aggregate depends on the order of solutions.
fn has_ordered(aggregates: &[(Variable, AggregateExpression)]) -> bool {
    let needs_order = |aggregate: &AggregateExpression| match aggregate {
        AggregateExpression::FunctionCall { name, .. } => {
            matches!(name, AggregateFunction::GroupConcat { .. } | AggregateFunction::Sample)
        }
        _ => false,
    };
    aggregates.iter().any(|(_, aggregate)| needs_order(aggregate))
}

/// Returns `true` if the solutions of a query are ordered.
pub fn is_ordered(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::OrderBy { .. } => true,
        GraphPattern::Slice { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Project { inner, .. } => is_ordered(inner),
        _ => false,
    }
}

/// Returns `true` if a part drops some of its solutions without an order, so that which ones remain is unspecified.
pub fn has_unordered_limit(pattern: &GraphPattern) -> bool {
    let mut is_cut = false;
    rewritten(pattern, &mut |part| {
        is_cut |= matches!(part, GraphPattern::Slice { inner, .. } if !is_ordered(inner));
        None
    });
    is_cut
}

/// Returns a pattern over the columns of a table, whose solutions are the rows.
fn table_pattern(position: usize, table: &Table, names: &[String]) -> GraphPattern {
    let row = || TermPattern::Variable(Variable::new_unchecked(format!("{ROW}{position}")));
    let cell = |column: Option<usize>, object: TermPattern| TriplePattern {
        subject: row(),
        predicate: NamedNodePattern::NamedNode(column_name(position, column)),
        object,
    };
    let value = |name: &str| match name.strip_prefix("_:") {
        Some(label) => TermPattern::BlankNode(BlankNode::new_unchecked(label)),
        None => TermPattern::Variable(Variable::new_unchecked(name)),
    };
    let mut patterns = vec![cell(None, row())];
    let mut optional = Vec::new();
    for (column, variable) in table.variables.iter().enumerate() {
        let pattern = cell(Some(column), value(&names[*variable]));
        if table.always_binds(*variable) { &mut patterns } else { &mut optional }.push(pattern);
    }
    optional.into_iter().fold(GraphPattern::Bgp { patterns }, |left, pattern| GraphPattern::LeftJoin {
        left: Box::new(left),
        right: Box::new(GraphPattern::Bgp { patterns: vec![pattern] }),
        expression: None,
    })
}

/// The triples that the rest of a query needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Triples of these predicates.
    pub predicates: BTreeSet<String>,
    /// True if all triples are needed.
    pub all: bool,
    /// True if triples of named graphs are needed.
    pub graphs: bool,
    /// Unsupported feature that the query needs: other services.
    pub unsupported: Option<&'static str>,
}

impl Needs {
    /// Returns the needs of the parts of `pattern` that are not evaluated by all places.
    pub fn of(pattern: &GraphPattern, translation: &mut Translation) -> Needs {
        let mut needs = Needs::default();
        let rest = rewritten(pattern, &mut |part| {
            translation.node(part)?;
            Some(GraphPattern::default())
        });
        needs.add(&rest);
        needs
    }

    fn predicate(&mut self, predicate: &NamedNode) {
        self.predicates.insert(predicate.as_str().to_owned());
    }

    fn add(&mut self, pattern: &GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                for pattern in patterns {
                    match &pattern.predicate {
                        NamedNodePattern::NamedNode(node) => self.predicate(node),
                        NamedNodePattern::Variable(_) => self.all = true,
                    }
                }
            }
            GraphPattern::Path { path, .. } => self.add_path(path),
            GraphPattern::Graph { inner, .. } => {
                self.graphs = true;
                self.add(inner);
            }
            GraphPattern::Service { .. } => {
                self.unsupported = Some(
                    "SERVICE: federated queries are not \
                 supported",
                )
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                self.add(left);
                self.add(right);
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                self.add(left);
                self.add(right);
                expression.iter().for_each(|expression| self.add_expression(expression));
            }
            GraphPattern::Filter { expr, inner } => {
                self.add(inner);
                self.add_expression(expr);
            }
            GraphPattern::Extend { inner, expression, .. } => {
                self.add(inner);
                self.add_expression(expression);
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.add(inner);
                for OrderExpression::Asc(part) | OrderExpression::Desc(part) in expression {
                    self.add_expression(part);
                }
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.add(inner);
                for (_, aggregate) in aggregates {
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.add_expression(expr);
                    }
                }
            }
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.add(inner),
            GraphPattern::Values { .. } => {}
        }
    }

    fn add_path(&mut self, path: &PropertyPathExpression) {
        match path {
            PropertyPathExpression::NamedNode(node) => self.predicate(node),
            PropertyPathExpression::Reverse(inner) | PropertyPathExpression::OneOrMore(inner) => {
                self.add_path(inner);
            }
            PropertyPathExpression::Sequence(left, right)
            | PropertyPathExpression::Alternative(left, right) => {
                self.add_path(left);
                self.add_path(right);
            }
            // A path of zero length leads from each node to itself; a negated one may match any predicate.
            PropertyPathExpression::ZeroOrMore(_)
            | PropertyPathExpression::ZeroOrOne(_)
            | PropertyPathExpression::NegatedPropertySet(_) => self.all = true,
        }
    }

    fn add_expression(&mut self, expression: &Expression) {
        match expression {
            Expression::Exists(pattern) => self.add(pattern),
            Expression::Or(left, right)
            | Expression::And(left, right)
            | Expression::Equal(left, right)
            | Expression::SameTerm(left, right)
            | Expression::Greater(left, right)
            | Expression::GreaterOrEqual(left, right)
            | Expression::Less(left, right)
            | Expression::LessOrEqual(left, right)
            | Expression::Add(left, right)
            | Expression::Subtract(left, right)
            | Expression::Multiply(left, right)
            | Expression::Divide(left, right) => {
                self.add_expression(left);
                self.add_expression(right);
            }
            Expression::UnaryPlus(inner) | Expression::UnaryMinus(inner) | Expression::Not(inner) => {
                self.add_expression(inner);
            }
            Expression::If(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each(|part| self.add_expression(part));
            }
            Expression::In(left, right) => {
                self.add_expression(left);
                right.iter().for_each(|part| self.add_expression(part));
            }
            Expression::Coalesce(parts) | Expression::FunctionCall(_, parts) => {
                parts.iter().for_each(|part| self.add_expression(part));
            }
            Expression::NamedNode(_)
            | Expression::Literal(_)
            | Expression::Variable(_)
            | Expression::Bound(_) => {}
        }
    }
}
