//! Code generation for captures: the values that a call site sends and the bindings that the body gets.
//!
//! A variable used as a whole is one capture. A variable used through its fields becomes a *view*: a small structure,
//! made for this call site, that has only the used fields, so that the body's text `graph.offsets` still holds. A
//! handle on the path travels itself, and only the compiler knows which variables and fields are handles; the code asks
//! it by `prefix(..).__isles_choose(..)`. Captures are nested pairs, in the order of first use.

use crate::call::Item;
use crate::renaming::name_in_body;
use crate::usage::{self, Used};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Index, Member};

/// The generated code for the captures of one call site.
pub struct Captures {
    /// Statements of an explicit list, evaluated before anything travels.
    pub rebindings: TokenStream,
    /// The views.
    pub views: TokenStream,
    /// Checks that the types are known, for a better message than a wrong guess.
    pub checks: TokenStream,
    /// The nested pairs that travel.
    pub value: TokenStream,
    /// The pattern that binds the decoded captures.
    pub pattern: TokenStream,
}

impl Captures {
    /// Generates the captures that the analysis of the body found.
    pub fn found(roots: &[Used<Ident>]) -> Captures {
        Captures::new(roots, TokenStream::new(), true)
    }

    /// Generates exactly the captures of `list`.
    pub fn listed(list: &[Item]) -> Captures {
        let mut roots = Vec::new();
        let mut rebindings = TokenStream::new();
        for item in list {
            let path = match item {
                Item::Path(path) => (path.root.clone(), path.members.clone()),
                Item::Reference(name) => {
                    rebindings.extend(quote!(let #name = &#name;));
                    (name.clone(), Vec::new())
                }
                Item::Named(name, value) => {
                    rebindings.extend(quote!(let #name = #value;));
                    (name.clone(), Vec::new())
                }
            };
            usage::add(&mut roots, crate::call::FieldPath { root: path.0, members: path.1 });
        }
        Captures::new(&roots, rebindings, false)
    }

    /// `ask`: whether the compiler chooses a handle on the path to a field, which then travels instead.
    fn new(roots: &[Used<Ident>], rebindings: TokenStream, ask: bool) -> Captures {
        let mut views = Views { structures: TokenStream::new(), count: 0, ask };
        let mut captures = Captures {
            rebindings,
            views: quote!(),
            checks: quote!(),
            value: quote!(()),
            pattern: quote!(()),
        };
        for root in roots.iter().rev() {
            let name = &root.name;
            let capture = views.root(root);
            let (value, pattern) = (&captures.value, &captures.pattern);
            captures.value = quote!((#capture, #value));
            let seen = name_in_body(name);
            captures.pattern = quote!((#seen, #pattern));
            if root.fields.is_empty() {
                let check = quote_spanned!(name.span()=> #name.__isles_known(););
                captures.checks.extend(check);
            }
        }
        captures.views = views.structures;
        captures
    }
}

/// The views made so far.
struct Views {
    structures: TokenStream,
    count: usize,
    ask: bool,
}

impl Views {
    /// The capture of a variable.
    fn root(&mut self, root: &Used<Ident>) -> TokenStream {
        let name = &root.name;
        let capture = match root.fields.is_empty() {
            true => capture(&quote!(#name), name.span()),
            false => self.fields(&quote!(#name), &root.fields, name.span()),
        };
        quote_spanned!(name.span()=> ::isles::__private::travelling(#capture))
    }

    /// The capture of some fields of `source`, or of `source` itself if it is a handle.
    fn fields(&mut self, source: &TokenStream, fields: &[Used<Member>], span: Span) -> TokenStream {
        let values: Vec<TokenStream> = fields
            .iter()
            .map(|field| {
                let member = &field.name;
                let span = member_span(member);
                let path = quote_spanned!(span=> #source.#member);
                match field.fields.is_empty() {
                    true => capture(&path, span),
                    false => self.fields(&path, &field.fields, span),
                }
            })
            .collect();
        let view = self.structure(fields);
        let members = fields.iter().map(|field| &field.name);
        let gaps = gaps(fields).into_iter().map(|index| quote!(#index: (),));
        let value = quote!(#view { #(#members: #values,)* #(#gaps)* });
        match self.ask {
            true => quote_spanned!(span=> ::isles::__private::prefix(&#source).__isles_choose(|| #value)),
            false => value,
        }
    }

    /// Generates the structure with these fields and its implementations of the capture traits.
    fn structure(&mut self, fields: &[Used<Member>]) -> Ident {
        let view = format_ident!("__IslesView{}", self.count);
        self.count += 1;
        let kinds: Vec<Ident> = (0..fields.len()).map(|index| format_ident!("F{index}")).collect();
        let members: Vec<&Member> = fields.iter().map(|field| &field.name).collect();
        let gaps = gaps(fields);
        let declaration = declaration(&view, &members, &kinds, &gaps);
        self.structures.extend(quote! {
            #declaration
            impl<#(#kinds: ::isles::__private::Travel),*> ::isles::__private::Travel for #view<#(#kinds),*> {
                type Decoded = #view<#(#kinds::Decoded),*>;
                fn encode(
                    &self,
                    to: &mut ::isles::__private::Writer<'_>,
                ) -> ::core::result::Result<(), ::isles::__private::EncodeError> {
                    #(::isles::__private::Travel::encode(&self.#members, to)?;)*
                    ::core::result::Result::Ok(())
                }
                fn decode(
                    from: &mut ::isles::__private::Reader<'_>,
                ) -> ::core::result::Result<Self::Decoded, ::isles::__private::DecodeError> {
                    ::core::result::Result::Ok(#view {
                        #(#members: <#kinds as ::isles::__private::Travel>::decode(from)?,)*
                        #(#gaps: (),)*
                    })
                }
                fn check_roundtrip(&self) -> ::core::result::Result<(), ::isles::__private::Error> {
                    #(::isles::__private::Travel::check_roundtrip(&self.#members)?;)*
                    ::core::result::Result::Ok(())
                }
            }
            impl<#(#kinds: ::isles::__private::Bind),*> ::isles::__private::Bind for #view<#(#kinds),*> {
                type Bound<'bound> = #view<#(#kinds::Bound<'bound>),*> where Self: 'bound;
                fn bind(&mut self) -> Self::Bound<'_> {
                    #view {
                        #(#members: ::isles::__private::Bind::bind(&mut self.#members),)*
                        #(#gaps: (),)*
                    }
                }
            }
        });
        view
    }
}

/// The definition of the structure, with named fields or as a tuple.
fn declaration(view: &Ident, members: &[&Member], kinds: &[Ident], gaps: &[Index]) -> TokenStream {
    if let Some(Member::Named(_)) = members.first() {
        return quote!(struct #view<#(#kinds),*> { #(#members: #kinds),* });
    }
    let positions = (0..members.len() + gaps.len()).map(|position| {
        let index = members
            .iter()
            .position(|member| matches!(member, Member::Unnamed(at) if at.index as usize == position));
        match index.map(|index| &kinds[index]) {
            Some(kind) => quote!(#kind),
            None => quote!(()),
        }
    });
    quote!(struct #view<#(#kinds),*>(#(#positions),*);)
}

/// The unused positions below the last used one; none if the fields have names.
fn gaps(fields: &[Used<Member>]) -> Vec<Index> {
    let used: Vec<u32> = fields
        .iter()
        .filter_map(|field| match &field.name {
            Member::Unnamed(index) => Some(index.index),
            Member::Named(_) => None,
        })
        .collect();
    let end = used.iter().max().map_or(0, |last| last + 1);
    (0..end).filter(|index| !used.contains(index)).map(|index| Index::from(index as usize)).collect()
}

/// The capture of one variable or field.
fn capture(source: &TokenStream, span: Span) -> TokenStream {
    quote_spanned!(span=> ::isles::__private::tag(&#source).__isles_capture())
}

fn member_span(member: &Member) -> Span {
    match member {
        Member::Named(name) => name.span(),
        Member::Unnamed(index) => index.span,
    }
}
