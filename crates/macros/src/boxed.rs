//! `#[boxed]`: the future of an async function in a box.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, GenericParam, ItemFn, Lifetime, Result, ReturnType, parse_quote};

/// Lifetime of the future: that of all borrowed arguments.
const LIFETIME: &str = "'boxed";

pub(super) fn boxed(mut item: ItemFn) -> Result<TokenStream> {
    let sig = &mut item.sig;
    if sig.asyncness.take().is_none() {
        return Err(Error::new(sig.fn_token.span(), "the function is not async"));
    }
    let lifetime = Lifetime::new(LIFETIME, Span::call_site());
    let mut bounds: Vec<TokenStream> = Vec::new();
    for parameter in &sig.generics.params {
        match parameter {
            GenericParam::Lifetime(own) => {
                let own = &own.lifetime;
                bounds.push(quote!(#own: #lifetime));
            }
            other => {
                let why = "a generic function is compiled where it is called: a box saves nothing";
                return Err(Error::new(other.span(), why));
            }
        }
    }
    if sig.receiver().is_some() {
        bounds.push(quote!(Self: #lifetime));
    }
    sig.generics.params.insert(0, parse_quote!(#lifetime));
    let inputs = borrowed(sig.inputs.to_token_stream());
    let output = match &sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, output) => borrowed(output.to_token_stream()),
    };
    let (attrs, vis, name, block) = (&item.attrs, &item.vis, &sig.ident, &item.block);
    let parameters = &sig.generics.params;
    Ok(quote! {
        #(#attrs)*
        #vis fn #name<#parameters>(#inputs) -> ::futures_util::future::BoxFuture<#lifetime, #output>
        where
            #(#bounds),*
        {
            ::std::boxed::Box::pin(async move #block)
        }
    })
}

/// Gives the lifetime of the future to references without one and to `'_`, but not in arguments of functions.
fn borrowed(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut out = Vec::new();
    let mut function = false;
    while let Some(token) = tokens.next() {
        let next = tokens.peek();
        match token {
            TokenTree::Punct(and) if and.as_char() == '&' => {
                let named =
                    matches!(next, Some(TokenTree::Punct(punct)) if punct.as_char() == '\'');
                out.push(TokenTree::Punct(and));
                if !named {
                    out.extend(lifetime());
                }
            }
            TokenTree::Punct(quote) if quote.as_char() == '\'' => {
                let elided = matches!(next, Some(TokenTree::Ident(name)) if name == "_");
                if elided {
                    tokens.next();
                    out.extend(lifetime());
                } else {
                    out.push(TokenTree::Punct(quote));
                }
            }
            TokenTree::Group(group)
                if !(function && group.delimiter() == Delimiter::Parenthesis) =>
            {
                let inner = borrowed(group.stream());
                let mut changed = Group::new(group.delimiter(), inner);
                changed.set_span(group.span());
                out.push(TokenTree::Group(changed));
            }
            TokenTree::Ident(name) => {
                function = ["fn", "Fn", "FnMut", "FnOnce"].iter().any(|it| name == it);
                out.push(TokenTree::Ident(name));
                continue;
            }
            other => out.push(other),
        }
        function = false;
    }
    out.into_iter().collect()
}

fn lifetime() -> [TokenTree; 2] {
    let name = LIFETIME.trim_start_matches('\'');
    [
        TokenTree::Punct(Punct::new('\'', Spacing::Joint)),
        TokenTree::Ident(Ident::new(name, Span::call_site())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(item: ItemFn) -> String {
        boxed(item).map_or_else(|error| error.to_string(), |tokens| tokens.to_string())
    }

    #[test]
    fn borrowed_arguments_live_as_long_as_the_future() {
        let item = parse_quote! {
            pub async fn read(&self, key: &str, of: Part<'_>, all: &[&str], see: &dyn Fn(&str)) -> Result<Found<'_>, Error> {
                self.0
            }
        };
        let expected = quote! {
            pub fn read<'boxed>(
                &'boxed self,
                key: &'boxed str,
                of: Part<'boxed>,
                all: &'boxed [&'boxed str],
                see: &'boxed dyn Fn(&str)
            ) -> ::futures_util::future::BoxFuture<'boxed, Result<Found<'boxed>, Error> >
            where
                Self: 'boxed
            {
                ::std::boxed::Box::pin(async move { self.0 })
            }
        };
        assert_eq!(expand(item), expected.to_string());
    }

    #[test]
    fn own_lifetimes_outlive_the_future_and_types_are_refused() {
        let own = expand(parse_quote! { async fn own<'a>(of: &'a str) { of } });
        assert!(own.contains("'a : 'boxed"), "{own}");
        let generic = expand(parse_quote! { async fn each<T>(of: T) { of } });
        assert!(generic.contains("a generic function"), "{generic}");
        let plain = expand(parse_quote! { fn plain() {} });
        assert_eq!(plain, "the function is not async");
    }
}
